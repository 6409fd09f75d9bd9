"""Frozen files of the author: committed, tagged, signed and pushed at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import git
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from registry.errors import StudyError
from registry.publish import advance, identity, push, write_blob, write_commit
from registry.ssh_signature import default_key_path, load_key, public_text, sign
from registry.study import Study
from registry.tags import tag_payload


@dataclass(frozen=True)
class FrozenFile:
    """A file to freeze: its place, bytes and digest, its tag and title, and
    the command that repeats a rejected push; `beside`: files committed with it.
    """

    path: str
    data: bytes
    digest: str
    tag: str
    title: str
    again: str
    beside: Mapping[str, bytes] = field(default_factory=dict)


def signing_key(study: Study) -> Ed25519PrivateKey:
    """The study's private key; StudyError where it is missing or another's."""
    key = load_key(default_key_path())
    if public_text(key) != study.settings.signing_key:
        raise StudyError(
            "the signing key is not the study's",
            where=str(default_key_path()),
            value=public_text(key),
            remedy="set TRAP_SIGNING_KEY to the key of study.yaml",
        )
    return key


def push_frozen(study: Study, repository: git.Repo, frozen: FrozenFile) -> str:
    """Commit, tag and push a file in one atomic push; the tag object's id.

    Nothing moves here before the remote has accepted.
    """
    head = repository.head.commit.hexsha
    commit = write_commit(repository, head, {**frozen.beside, frozen.path: frozen.data}, f"Freeze {frozen.tag}")
    payload = tag_payload(commit, frozen.tag, identity(repository), frozen.title, frozen.digest)
    tag_object = write_blob(repository, payload + sign(signing_key(study), payload), "tag")
    refs = [f"{commit}:refs/heads/{study.settings.branch}", f"{tag_object}:refs/tags/{frozen.tag}"]
    push(repository, study.settings.remote, refs, frozen.again)
    repository.git.update_ref(f"refs/tags/{frozen.tag}", tag_object)
    advance(repository, commit, [*frozen.beside, frozen.path])
    return tag_object
