"""Ed25519 keys in OpenSSH form, and SSH signatures of git tags and more.

Format: OpenSSH PROTOCOL.sshsig, hash SHA-512. In the namespace `git` git
verifies what is signed here, and `verify` accepts what `git tag -s` signs.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import struct
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from registry.errors import StudyError, TrapError

_MAGIC = b"SSHSIG"
_TAGS = b"git"
_HASH = b"sha512"
_ED25519 = b"\0\0\0\x0bssh-ed25519"
BEGIN = b"-----BEGIN SSH SIGNATURE-----"
END = b"-----END SSH SIGNATURE-----"
_ARMOUR = re.compile(BEGIN + rb"\n([A-Za-z0-9+/=\n]*)\n" + END + rb"\n*")


class SignatureRejected(TrapError):
    """A signature that does not hold, with the reason."""


def default_key_path() -> Path:
    """`$TRAP_SIGNING_KEY`, else `trap/signing_key` in the user's config folder."""
    if named := os.environ.get("TRAP_SIGNING_KEY"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "trap" / "signing_key"


def ledger_key_path() -> Path:
    """`$TRAP_LEDGER_KEY`, else the study's key: they part when a ledger's key is
    rotated, while registrations keep theirs.
    """
    named = os.environ.get("TRAP_LEDGER_KEY")
    return Path(named).expanduser() if named else default_key_path()


def ensure_key(path: Path) -> tuple[Ed25519PrivateKey, bool]:
    """The private key at `path`, made (mode 0600) where there is none.

    Returns the key and whether it was made now.
    """
    if path.exists():
        return load_key(path), False
    key = Ed25519PrivateKey.generate()
    data = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return key, True


def load_key(path: Path) -> Ed25519PrivateKey:
    """An unencrypted OpenSSH Ed25519 private key."""
    try:
        key = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        raise StudyError(
            "the signing key is missing", where=str(path), remedy="set TRAP_SIGNING_KEY to the study's key"
        ) from None
    except (ValueError, TypeError, OSError, UnsupportedAlgorithm) as error:
        raise StudyError(
            f"the signing key cannot be read: {error}", where=str(path), remedy="use an unencrypted OpenSSH Ed25519 key"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise StudyError(
            "the signing key is not Ed25519", where=str(path), remedy="make one: ssh-keygen -t ed25519 -N ''"
        )
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """`ssh-ed25519 AAAA...`, as it stands in study.yaml."""
    return "ssh-ed25519 " + base64.b64encode(_public_blob(key.public_key())).decode()


def load_public(text: str) -> Ed25519PublicKey:
    """The key of `ssh-ed25519 AAAA...`, without a comment; SignatureRejected for
    anything else.
    """
    try:
        kind, raw = _strings(base64.b64decode(text.removeprefix("ssh-ed25519 "), validate=True), 2)
        key = Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, struct.error):
        raise SignatureRejected("not an Ed25519 public key", value=text[:100]) from None
    if kind != b"ssh-ed25519" or "ssh-ed25519 " + base64.b64encode(_public_blob(key)).decode() != text:
        raise SignatureRejected("not an Ed25519 public key in OpenSSH's form", value=text[:100])
    return key


def fingerprint(public_key: str) -> str:
    """`SHA256:...` of `ssh-ed25519 AAAA...`, as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(_public_blob(load_public(public_key))).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def sign(key: Ed25519PrivateKey, message: bytes, namespace: bytes = _TAGS) -> bytes:
    """The armored SSH signature of `message`, ending in a newline.

    `namespace` says what is signed, so that no signature serves for another.
    """
    signature = _string(b"ssh-ed25519") + _string(key.sign(_signed_data(message, _HASH, namespace)))
    blob = (
        _MAGIC
        + struct.pack(">I", 1)
        + _string(_public_blob(key.public_key()))
        + _string(namespace)
        + _string(b"")
        + _string(_HASH)
        + _string(signature)
    )
    text = base64.b64encode(blob)
    lines = [text[i : i + 70] for i in range(0, len(text), 70)]
    return b"\n".join([BEGIN, *lines, END]) + b"\n"


def verify(armored: bytes, message: bytes, namespace: bytes = _TAGS) -> str:
    """Check a signature; returns its public key as `ssh-ed25519 AAAA...`.

    Raises SignatureRejected where the form, namespace or signature is wrong.
    Whether that key is trusted is for the caller to judge.
    """
    try:
        armour = _ARMOUR.fullmatch(armored)
        blob = base64.b64decode(armour[1].replace(b"\n", b"") if armour else b"", validate=True)
        if blob[:10] != _MAGIC + struct.pack(">I", 1):
            raise SignatureRejected("not an SSH signature of version 1")
        public, made_for, _, hashing, signature = _strings(blob[10:], 5)
        if not public.startswith(_ED25519) or not signature.startswith(_ED25519):
            raise SignatureRejected("the signature is not Ed25519")
        _, raw = _strings(signature, 2)
        _, key_bytes = _strings(public, 2)
    except (ValueError, struct.error):
        raise SignatureRejected("the SSH signature is malformed") from None
    if made_for != namespace or hashing not in (b"sha256", b"sha512"):
        raise SignatureRejected("the signature was made for another purpose", value=made_for.decode("latin1"))
    try:
        key = Ed25519PublicKey.from_public_bytes(key_bytes)
        key.verify(raw, _signed_data(message, hashing, namespace))
    except (InvalidSignature, ValueError):
        raise SignatureRejected("the signature does not fit the tag") from None
    return "ssh-ed25519 " + base64.b64encode(public).decode()


def _signed_data(message: bytes, hashing: bytes, namespace: bytes) -> bytes:
    digest = hashlib.new(hashing.decode(), message).digest()
    return _MAGIC + _string(namespace) + _string(b"") + _string(hashing) + _string(digest)


def _public_blob(key: Ed25519PublicKey) -> bytes:
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return _string(b"ssh-ed25519") + _string(raw)


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _strings(data: bytes, count: int) -> list[bytes]:
    parts = []
    for _ in range(count):
        (length,) = struct.unpack(">I", data[:4])
        if len(data) < 4 + length:
            raise ValueError("truncated")
        parts.append(data[4 : 4 + length])
        data = data[4 + length :]
    if data:
        raise ValueError("trailing data")
    return parts
