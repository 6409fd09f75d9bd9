"""Registration tags: their names, their bytes, and what is none."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.ssh_signature import BEGIN, END
from registry.tags import NotATag, parse_tag, parse_tag_name, tag_payload

COMMIT, DIGEST = "0123456789" * 4, "ab" * 32
TAGGER = "Ada <ada@example.org> 1700000000 +0000"
PAYLOAD = tag_payload(COMMIT, "reg/e2/v1", TAGGER, "A burst traps the engine", DIGEST)
SIGNATURE = BEGIN + b"\nAAAA\n" + END + b"\n"


@given(st.from_regex(r"[a-z0-9-]{1,63}", fullmatch=True), st.integers(1, 999_999))
@settings(max_examples=60)
def test_a_tag_name_is_read_back(name: str, version: int) -> None:
    assert parse_tag_name(f"reg/{name}/v{version}") == (name, version)


@pytest.mark.parametrize(
    "name",
    [
        "reg/e2",
        "reg/e2/v0",
        "reg/e2/v01",
        "reg/e2/1",
        "reg/E2/v1",
        "reg/e_2/v1",
        "reg//v1",
        "pred/e2/v1",
        "refs/tags/reg/e2/v1",
        "reg/e2/v1/x",
        "reg/e2/v1000000",
        "reg/../v1",
        "v1.0",
        "reg/e2/v1\n",
        "reg/e2\n/v1",
        "",
        "reg/" + "a" * 64 + "/v1",
        "reg/e2/v\u0661",
    ],
)
def test_any_other_name_is_no_registration_tag(name: str) -> None:
    assert parse_tag_name(name) is None


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=80))
@settings(max_examples=60)
def test_a_payload_is_read_back_whatever_its_title(title: str) -> None:
    payload = tag_payload(COMMIT, "reg/e2/v3", TAGGER, title, DIGEST)
    tag = parse_tag(payload + SIGNATURE)
    assert (tag.commit, tag.name, tag.digest) == (COMMIT, "reg/e2/v3", DIGEST)
    assert (tag.signed, tag.signature) == (payload, SIGNATURE)


def test_a_title_that_quotes_a_signature_does_not_cut_the_signed_bytes() -> None:
    payload = tag_payload(COMMIT, "reg/e2/v1", TAGGER, f"{BEGIN.decode()} x", DIGEST)
    assert parse_tag(payload + SIGNATURE).signed == payload
    assert parse_tag(payload).signature == b""


def test_an_unsigned_tag_has_a_digest_and_no_signature() -> None:
    tag = parse_tag(PAYLOAD)
    assert (tag.digest, tag.signed, tag.signature) == (DIGEST, b"", b"")


@pytest.mark.parametrize(
    "line",
    ["", "digest: sha256:" + "AB" * 32, "digest: sha256:ab", "digest: sha1:" + "ab" * 20, "x digest: sha256:" + DIGEST],
)
def test_a_tag_without_a_digest_line_has_none(line: str) -> None:
    payload = PAYLOAD.replace(b"digest: sha256:" + DIGEST.encode(), line.encode())
    assert parse_tag(payload).digest is None


def test_a_digest_after_the_signature_does_not_count() -> None:
    bare = PAYLOAD.replace(b"digest: sha256:" + DIGEST.encode() + b"\n", b"")
    assert parse_tag(bare + SIGNATURE + b"digest: sha256:" + DIGEST.encode() + b"\n").digest is None


def test_a_sha_256_repository_has_longer_object_names() -> None:
    assert parse_tag(PAYLOAD.replace(COMMIT.encode(), DIGEST.encode())).commit == DIGEST


COMMIT_OBJECT = f"tree {COMMIT}\nparent {COMMIT}\nauthor {TAGGER}\ncommitter {TAGGER}\n\nmessage\n".encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (COMMIT_OBJECT, "does not point at a commit"),
        (PAYLOAD.replace(b"type commit", b"type tree"), "does not point at a commit"),
        (PAYLOAD.replace(b"type commit", b"type tag"), "does not point at a commit"),
        (PAYLOAD.replace(b"type commit\n", b""), "does not point at a commit"),
        (PAYLOAD.replace(COMMIT.encode(), b"0123"), "does not point at a commit"),
        (PAYLOAD.replace(COMMIT.encode(), COMMIT.upper().replace("0", "A").encode()), "does not point at a commit"),
        (PAYLOAD.replace(b"type commit", b"object " + b"f" * 40 + b"\ntype commit"), "a header stands twice"),
        (PAYLOAD.replace(b"tagger", b"tag reg/e2/v2\ntagger"), "a header stands twice"),
        (b"", "does not point at a commit"),
        (b"\xff\xfe\x00", "does not point at a commit"),
    ],
)
def test_what_is_no_tag_of_a_commit_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(NotATag, match=words):
        parse_tag(data)


@given(st.binary(max_size=120))
@settings(max_examples=150)
def test_arbitrary_bytes_are_a_tag_or_refused(data: bytes) -> None:
    for tried in (data, PAYLOAD[:60] + data):
        with suppress(NotATag):
            parse_tag(tried)
