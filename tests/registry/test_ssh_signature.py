"""SSH signatures: understood by git and ssh-keygen, and refused where they do not hold."""

from __future__ import annotations

import base64
import os
import stat
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import StudyError
from registry.ssh_signature import (
    BEGIN,
    END,
    SignatureRejected,
    default_key_path,
    ensure_key,
    load_key,
    public_text,
    sign,
    verify,
)
from registry.tags import parse_tag, tag_payload

MESSAGE = b"object 0123\n\nmessage\n"


@pytest.fixture(scope="module")
def key_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "signing-key"
    ensure_key(path)
    return path


@pytest.fixture(scope="module")
def signature(key_path: Path) -> bytes:
    return sign(load_key(key_path), MESSAGE)


def run(*arguments: str | Path, cwd: Path | None = None, stdin: bytes = b"") -> bytes:
    done = subprocess.run([str(a) for a in arguments], cwd=cwd, input=stdin, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def made_key(folder: Path, kind: str, phrase: str = "") -> Path:
    path = folder / f"{kind}-key"
    run("ssh-keygen", "-q", "-t", kind, "-N", phrase, "-C", "test", "-f", path)
    return path


def reason(armored: bytes, message: bytes = MESSAGE) -> str:
    with pytest.raises(SignatureRejected) as caught:
        verify(armored, message)
    return caught.value.what


def blob_of(armored: bytes) -> bytes:
    return base64.b64decode(b"".join(armored.split(b"\n")[1:-2]))


def armour(blob: bytes) -> bytes:
    return BEGIN + b"\n" + base64.b64encode(blob) + b"\n" + END + b"\n"


# --- with ssh-keygen and git -------------------------------------------------


@pytest.mark.parametrize("message", [MESSAGE, b"", b"\x00\xff" * 5000], ids=["tag", "empty", "binary"])
def test_ssh_keygen_accepts_what_is_signed_here(key_path: Path, tmp_path: Path, message: bytes) -> None:
    key = load_key(key_path)
    (tmp_path / "allowed").write_text(f"a@example.org {public_text(key)}\n")
    (tmp_path / "signature").write_bytes(sign(key, message))
    arguments = ["-f", tmp_path / "allowed", "-I", "a@example.org", "-n", "git", "-s", tmp_path / "signature"]
    assert b"Good" in run("ssh-keygen", "-Y", "verify", *arguments, stdin=message)


@pytest.mark.parametrize("hashing", ["sha256", "sha512"])
def test_what_ssh_keygen_signs_is_accepted(tmp_path: Path, hashing: str) -> None:
    key = made_key(tmp_path, "ed25519")
    signed = run("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "git", "-O", f"hashalg={hashing}", stdin=MESSAGE)
    assert verify(signed, MESSAGE) == public_text(load_key(key))


def test_a_tag_that_git_signs_is_accepted_and_ours_is_accepted_by_git(key_path: Path, tmp_path: Path) -> None:
    key = load_key(key_path)
    (tmp_path / "allowed").write_text(f"ada@example.org {public_text(key)}\n")
    run("git", "init", "-q", "-b", "main", cwd=tmp_path)
    for name, value in {
        "user.name": "Ada",
        "user.email": "ada@example.org",
        "gpg.format": "ssh",
        "user.signingkey": str(key_path),
        "gpg.ssh.allowedSignersFile": str(tmp_path / "allowed"),
    }.items():
        run("git", "config", name, value, cwd=tmp_path)
    run("git", "commit", "-q", "--allow-empty", "-m", "one", cwd=tmp_path)

    run("git", "tag", "-s", "-m", "by git", "theirs", cwd=tmp_path)
    theirs = parse_tag(run("git", "cat-file", "tag", "theirs", cwd=tmp_path))
    assert verify(theirs.signature, theirs.signed) == public_text(key)

    commit = run("git", "rev-parse", "HEAD", cwd=tmp_path).decode().strip()
    tagger = "Ada <ada@example.org> 1700000000 +0000"
    payload = tag_payload(commit, "reg/e2/v1", tagger, "A title", "ab" * 32)
    written = payload + sign(key, payload)
    oid = run("git", "hash-object", "-t", "tag", "-w", "--stdin", cwd=tmp_path, stdin=written).decode().strip()
    run("git", "update-ref", "refs/tags/reg/e2/v1", oid, cwd=tmp_path)
    run("git", "verify-tag", "reg/e2/v1", cwd=tmp_path)
    run("git", "fsck", "--strict", cwd=tmp_path)


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_a_signature_by_another_kind_of_key_is_refused(tmp_path: Path, kind: str) -> None:
    signed = run("ssh-keygen", "-q", "-Y", "sign", "-f", made_key(tmp_path, kind), "-n", "git", stdin=MESSAGE)
    assert reason(signed) == "the signature is not Ed25519"


def test_a_signature_for_another_purpose_is_refused(tmp_path: Path) -> None:
    signed = run("ssh-keygen", "-q", "-Y", "sign", "-f", made_key(tmp_path, "ed25519"), "-n", "file", stdin=MESSAGE)
    assert reason(signed) == "the signature was made for another purpose"


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_a_key_of_another_kind_cannot_sign(tmp_path: Path, kind: str) -> None:
    with pytest.raises(StudyError, match="not Ed25519"):
        load_key(made_key(tmp_path, kind))


def test_an_encrypted_key_cannot_sign(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        load_key(made_key(tmp_path, "ed25519", "secret"))


# --- rejections --------------------------------------------------------------


def test_a_signature_names_its_key(key_path: Path, signature: bytes) -> None:
    assert verify(signature, MESSAGE) == public_text(load_key(key_path))
    assert max(map(len, signature.split(b"\n"))) <= 70


def test_a_changed_message_is_refused(signature: bytes) -> None:
    for message in (MESSAGE + b" ", MESSAGE[:-1], b"", MESSAGE.replace(b"\n", b"\r\n")):
        assert reason(signature, message) == "the signature does not fit the tag"


def test_another_key_in_the_signature_is_refused(signature: bytes, tmp_path: Path) -> None:
    other, _ = ensure_key(tmp_path / "other")
    raw = base64.b64decode(public_text(other).split()[1])[-32:]
    blob = blob_of(signature)
    assert reason(armour(blob[:33] + raw + blob[65:])) == "the signature does not fit the tag"


def test_another_version_is_refused(signature: bytes) -> None:
    blob = blob_of(signature)
    assert reason(armour(blob[:6] + struct.pack(">I", 2) + blob[10:])) == "not an SSH signature of version 1"


def test_another_magic_is_refused(signature: bytes) -> None:
    assert reason(armour(b"SSHSIQ" + blob_of(signature)[6:])) == "not an SSH signature of version 1"


def test_another_namespace_or_hash_is_refused(signature: bytes) -> None:
    blob = blob_of(signature)
    words = "the signature was made for another purpose"
    assert reason(armour(blob.replace(b"\0\0\0\x03git", b"\0\0\0\x03gut"))) == words
    assert reason(armour(blob.replace(b"sha512", b"sha384"))) == words


def test_every_truncation_is_refused(signature: bytes) -> None:
    blob = blob_of(signature)
    for length in range(len(blob)):
        assert "malformed" in (words := reason(armour(blob[:length]))) or "not an SSH signature" in words


def test_trailing_bytes_are_refused(signature: bytes) -> None:
    blob = blob_of(signature)
    assert reason(armour(blob + b"\0")) == "the SSH signature is malformed"
    raw = blob[-64:]
    longer = blob[: -64 - 23] + struct.pack(">I", 84) + blob[-64 - 19 : -68] + struct.pack(">I", 65) + raw + b"\0"
    assert reason(armour(longer)) in ("the SSH signature is malformed", "the signature does not fit the tag")


def test_every_changed_bit_is_refused(signature: bytes) -> None:
    blob = blob_of(signature)
    for place in range(len(blob)):
        reason(armour(blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :]))


@pytest.mark.parametrize(
    "armored",
    [
        b"",
        b"garbage",
        BEGIN + b"\n" + END + b"\n",
        BEGIN + b"\n!!!!\n" + END + b"\n",
        BEGIN + b"\nAAA\n" + END + b"\n",
        b"-----BEGIN PGP SIGNATURE-----\nAAAA\n-----END PGP SIGNATURE-----\n",
    ],
)
def test_garbage_is_refused(armored: bytes) -> None:
    assert "SSH signature" in reason(armored)


def test_text_around_the_armour_is_refused(signature: bytes) -> None:
    assert "SSH signature" in reason(signature + b"x\n")
    assert "SSH signature" in reason(b"x\n" + signature)
    assert "SSH signature" in reason(signature.replace(b"\n", b"\r\n"))
    assert "SSH signature" in reason(signature + signature)


@given(st.binary(max_size=200))
@settings(max_examples=150)
def test_arbitrary_bytes_are_refused(blob: bytes) -> None:
    reason(armour(blob))
    reason(armour(b"SSHSIG\0\0\0\1" + blob))
    reason(blob)


# --- key files ---------------------------------------------------------------


def test_a_made_key_is_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        _, made = ensure_key(tmp_path / "new" / "key")
    finally:
        os.umask(before)
    assert made
    assert stat.S_IMODE((tmp_path / "new" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    key, made = ensure_key(tmp_path / "key")
    data = (tmp_path / "key").read_bytes()
    again, made_again = ensure_key(tmp_path / "key")
    assert (made, made_again) == (True, False)
    assert public_text(key) == public_text(again)
    assert (tmp_path / "key").read_bytes() == data


@pytest.mark.parametrize("data", [b"", b"not a key", b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
def test_a_file_that_is_no_key_is_refused_and_kept(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(data)
    with pytest.raises(StudyError, match="cannot be read") as caught:
        ensure_key(path)
    assert path.read_bytes() == data and caught.value.where == str(path)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="missing") as caught:
        load_key(tmp_path / "none")
    assert "TRAP_SIGNING_KEY" in str(caught.value.remedy)


def test_the_key_path_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAP_SIGNING_KEY", str(tmp_path / "named"))
    assert default_key_path() == tmp_path / "named"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRAP_SIGNING_KEY", "~/k")
    assert default_key_path() == tmp_path / "k"
    monkeypatch.delenv("TRAP_SIGNING_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert default_key_path() == tmp_path / "config" / "trap" / "signing_key"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert default_key_path() == tmp_path / ".config" / "trap" / "signing_key"
