"""Registration tags: names, annotated tag objects, signatures."""

from __future__ import annotations

import re
from dataclasses import dataclass

from registry.errors import TrapError
from registry.ssh_signature import BEGIN

_TAG = re.compile(r"(reg|pred)/([a-z0-9-]{1,63})/v([1-9][0-9]{0,5})")
_DIGEST = re.compile(rb"^digest: sha256:([0-9a-f]{64})$", re.MULTILINE)
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class NotATag(TrapError):
    """An object that is no annotated tag of the expected form."""


@dataclass(frozen=True)
class TagObject:
    """A parsed annotated tag.

    `digest` is the registration digest in its message; `signed` the bytes
    that `signature` covers (both empty for an unsigned tag).
    """

    commit: str
    name: str
    digest: str | None
    signed: bytes
    signature: bytes


def parse_tag_name(name: str, kind: str = "reg") -> tuple[str, int] | None:
    """(id, version) of `<kind>/<id>/v<N>`, None for any other name; kinds are
    `reg` for registrations and `pred` for predictions.
    """
    match = _TAG.fullmatch(name)
    return (match[2], int(match[3])) if match and match[1] == kind else None


def tag_payload(commit: str, name: str, tagger: str, title: str, digest: str) -> bytes:
    """The bytes of a registration's or its predictions' tag, to be signed.

    `tagger` is `Name <mail> seconds +0000`.
    """
    return (
        f"object {commit}\ntype commit\ntag {name}\ntagger {tagger}\n\n{name}: {title}\n\ndigest: sha256:{digest}\n"
    ).encode()


def parse_tag(data: bytes) -> TagObject:
    """Parse a tag object's bytes; NotATag where they have another form."""
    head, _, message = data.partition(b"\n\n")
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\n"):
        key, _, value = line.partition(" ")
        if key in headers:
            raise NotATag("a header stands twice", value=key)
        headers[key] = value
    if headers.get("type") != "commit" or not _OID.fullmatch(headers.get("object", "")):
        raise NotATag("the tag does not point at a commit", value=headers.get("type"))
    start = data.rfind(b"\n" + BEGIN) + 1 or -1
    digest = _DIGEST.search(message if start < 0 else data[:start])
    return TagObject(
        commit=headers["object"],
        name=headers.get("tag", ""),
        digest=digest[1].decode() if digest else None,
        signed=data[:start] if start >= 0 else b"",
        signature=data[start:] if start >= 0 else b"",
    )
