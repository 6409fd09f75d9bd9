"""What a ledger's log states: findings and keys, as in-toto Statements (v1).

The same facts give the same statement: no time, no place. Each names the log
that it stands in, so that a signed one proves nothing in another.
"""

from __future__ import annotations

import base64
from typing import Any

from ledger.envelope import STATEMENT_TYPE
from registry.canonical import canonical_bytes, sha256_hex
from registry.timestamps import moment

FINDING = "urn:trapkit:finding:1"
KEY = "urn:trapkit:ledger-key:1"
REVOCATION = "urn:trapkit:ledger-key-revocation:1"
AUDIT = "urn:trapkit:audit:1"


def statement(kind: str, subjects: list[dict[str, Any]], predicate: dict[str, Any]) -> dict[str, Any]:
    """An in-toto Statement with a predicate of this kind."""
    return {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": kind, "predicate": predicate}


def subject(name: str, digest: str, algorithm: str = "sha256") -> dict[str, Any]:
    """A subject: a name, and its digest in hex."""
    return {"name": name, "digest": {algorithm: digest}}


def finding_statement(origin: str, finding: dict[str, Any]) -> dict[str, Any]:
    """What the ledger says of one tag: `finding` is the tag's entry in the
    document. Subjects are the registration and the run.json of every run found;
    where no registration can be read, the finding itself.
    """
    digest = finding["digest"] or sha256_hex(canonical_bytes(finding))
    runs = [subject(f"{run['path']}/run.json", run["run_sha256"]) for run in finding["runs"] if run["run_sha256"]]
    return statement(FINDING, [subject(finding["tag"], digest), *runs], {"log": origin, "finding": finding})


def key_statement(origin: str, key: str, follows: str | None) -> dict[str, Any]:
    """That `key` signs from here on, in the place of `follows`; the first key
    follows none. Public keys as `ssh-ed25519 AAAA...`.
    """
    return statement(KEY, [_key_subject(key)], {"log": origin, "key": key, "follows": follows})


def revocation_statement(origin: str, key: str, from_size: int) -> dict[str, Any]:
    """That a former key's signatures on entries from index `from_size` on count
    no more.
    """
    return statement(REVOCATION, [_key_subject(key)], {"log": origin, "key": key, "from_size": from_size})


def _key_subject(key: str) -> dict[str, Any]:
    return subject(key, sha256_hex(base64.b64decode(key.removeprefix("ssh-ed25519 "))))


def leaf_order(finding: dict[str, Any]) -> tuple[Any, ...]:
    """Findings are appended by the time of their tag's push, then by kind, id
    and version; those that nobody saw pushed come last.
    """
    stem, _, version = finding["tag"].rpartition("/v")
    push = finding["push"]
    return (push is None, moment(push["time"]) if push else 0, stem, int(version))
