"""Signed checkpoints: a witness server's word on how its log begins.

A checkpoint names a repository, a count of rows and the digest of the last of
them; the chain does the rest. It is one RFC 8785 JSON object, its `signature`
an SSH signature (Ed25519, namespace `trap-checkpoint`) over the object without
that member. Whoever keeps a checkpoint finds a log that was rewritten later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from registry.canonical import canonical_bytes, load_json
from registry.errors import TrapError, WitnessError
from registry.witness.log import head_of, log_lines, parse_log

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SCHEMA = "trap-checkpoint-1"
NAMESPACE = b"trap-checkpoint"
MAX_CHECKPOINT_BYTES = 16_384


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose signature holds; whether `key` is trusted is for the
    caller to judge.

    `repository` is `owner/name`; `rows` is how many rows it covers, `head` the
    SHA-256 of the last one's line, hex; `key` is `ssh-ed25519 AAAA...`.
    """

    repository: str
    rows: int
    head: str
    key: str


def sign_checkpoint(key: Ed25519PrivateKey, repository: str, log: bytes) -> bytes:
    """The checkpoint of a whole log. The same log gives the same bytes."""
    from registry.ssh_signature import sign

    lines = log_lines(log, repository)
    value = {"schema": SCHEMA, "repository": repository, "rows": len(lines), "head": head_of(lines)}
    signature = sign(key, canonical_bytes(value), NAMESPACE).decode("ascii")
    return canonical_bytes(value | {"signature": signature})


def read_checkpoint(data: bytes, name: str) -> Checkpoint:
    """Read a checkpoint and check its signature; `name` stands in errors.

    WitnessError where form or signature does not hold.
    """
    from registry.ssh_signature import SignatureRejected, verify

    if len(data) > MAX_CHECKPOINT_BYTES:
        raise WitnessError("the checkpoint is too large", where=name, value=len(data))
    try:
        value = load_json(data, name)
        well_formed = _well_formed(value) and canonical_bytes(value) == data
    except TrapError as error:
        raise WitnessError(f"not a checkpoint: {error.what}", where=name) from None
    if not well_formed:
        raise WitnessError("not a checkpoint in canonical form", where=name)
    signed = canonical_bytes({key: part for key, part in value.items() if key != "signature"})
    try:
        key = verify(value["signature"].encode(), signed, NAMESPACE)
    except SignatureRejected:
        raise WitnessError("the checkpoint's signature does not hold", where=name) from None
    return Checkpoint(value["repository"], value["rows"], value["head"], key)


def verify_checkpoint(checkpoint: Checkpoint, repository: str, log: bytes, trusted_keys: Iterable[str]) -> str:
    """Check a log against a checkpoint; returns the trusted key that signed.

    WitnessError for another repository or key, for a log that is shorter or
    begins otherwise, and for one whose chain is broken. Rows beyond
    `checkpoint.rows` are nobody's word.
    """
    where = f"checkpoint of {repository}"
    if checkpoint.repository != repository:
        raise WitnessError("the checkpoint is of another repository", where=where, value=checkpoint.repository)
    if checkpoint.key not in {key_of(text) for text in trusted_keys}:
        raise WitnessError("the checkpoint is signed by a key that is not trusted", where=where, value=checkpoint.key)
    check_begins(checkpoint, log, where)
    return checkpoint.key


def check_begins(checkpoint: Checkpoint, log: bytes, where: str) -> None:
    """WitnessError where a log does not begin as the checkpoint says."""
    rows = parse_log(log, where)
    if len(rows) < checkpoint.rows:
        raise WitnessError(f"the log holds {len(rows)} rows, the checkpoint {checkpoint.rows}", where=where)
    if head_of(log_lines(log, where)[: checkpoint.rows]) != checkpoint.head:
        raise WitnessError("the log is not the one that the checkpoint was made of", where=where)


def key_of(text: str) -> str:
    """`ssh-ed25519 AAAA...` without the comment that may follow."""
    return " ".join(text.split()[:2])


def chain_name(public_key: str) -> str:
    """How a registration names a server's beacon: `witness:` and the SHA-256
    of its public key's text, hex.
    """
    return f"witness:{hashlib.sha256(key_of(public_key).encode()).hexdigest()}"


def _well_formed(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"schema", "repository", "rows", "head", "signature"}
        and value["schema"] == SCHEMA
        and all(isinstance(value[name], str) for name in ("repository", "head", "signature"))
        and type(value["rows"]) is int
        and value["rows"] >= 0
    )
