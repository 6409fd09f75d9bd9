"""Checkpoints: how long a log is, its root, and the document beside it, signed.

A checkpoint is C2SP's tlog-checkpoint, a signed note (c2sp.org/signed-note):
origin, size and root, and one extension line with the SHA-256 of the ledger's
document in canonical form without the checkpoint. Without a key it is the note's
text alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from registry.errors import CapExceeded, RecordError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_CHECKPOINT_BYTES = 16_384
_ED25519 = b"\x01"
_KEY_ID_BYTES = 4
_ORIGIN = r"[A-Za-z0-9._~:/-]{1,200}"
_TEXT = re.compile(
    rf"({_ORIGIN})\n(0|[1-9][0-9]{{0,15}})\n([A-Za-z0-9+/]{{43}}=)\ndocument sha256:([0-9a-f]{{64}})\n"
    rf"(?:\n— ({_ORIGIN}) ([A-Za-z0-9+/]{{91}}=)\n)?"
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as it was read: `text` is what a signature covers, `document`
    hex. `signature` is name, key id and signature, which nobody has checked yet.
    """

    origin: str
    size: int
    root: bytes
    document: str
    signature: tuple[str, bytes, bytes] | None = None

    @property
    def text(self) -> str:
        """The note's text."""
        root = base64.b64encode(self.root).decode()
        return f"{self.origin}\n{self.size}\n{root}\ndocument sha256:{self.document}\n"

    def signed(self, key: Ed25519PrivateKey | None) -> str:
        """The note, signed where there is a key."""
        if key is None:
            return self.text
        public = key.public_key().public_bytes_raw()
        signature = base64.b64encode(note_key_id(self.origin, public) + key.sign(self.text.encode()))
        return f"{self.text}\n— {self.origin} {signature.decode()}\n"

    def signed_by(self, public_key: str | None) -> bool:
        """Whether `ssh-ed25519 AAAA...` signed it under the origin's name."""
        from cryptography.exceptions import InvalidSignature

        from registry.ssh_signature import load_public

        if public_key is None or self.signature is None:
            return False
        key = load_public(public_key)
        name, key_id, signature = self.signature
        if name != self.origin or key_id != note_key_id(name, key.public_bytes_raw()):
            return False
        try:
            key.verify(signature, self.text.encode())
        except InvalidSignature:
            return False
        return True


def note_key_id(name: str, public_key: bytes) -> bytes:
    """The key id of an Ed25519 key (32 bytes) in signed notes."""
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public_key).digest()[:_KEY_ID_BYTES]


def parse_checkpoint(note: str, where: str) -> Checkpoint:
    """Read a checkpoint with one signature or none, in its one form; RecordError
    for anything else.
    """
    if len(note) > MAX_CHECKPOINT_BYTES:
        raise CapExceeded("the checkpoint is too large", where=where, value=len(note))
    found = _TEXT.fullmatch(note)
    if found is None:
        raise RecordError("not a checkpoint of a ledger", where=where, value=note[:80])
    origin, size, root, document, name, signature = found.groups()
    decoded = base64.b64decode(signature) if signature else b""
    parts = (name, decoded[:_KEY_ID_BYTES], decoded[_KEY_ID_BYTES:]) if name else None
    checkpoint = Checkpoint(origin, int(size), base64.b64decode(root), document, parts)
    again = f"{checkpoint.text}\n— {name} {base64.b64encode(decoded).decode()}\n" if name else checkpoint.text
    if again != note:
        raise RecordError("a checkpoint whose base64 has stray bits", where=where)
    return checkpoint
