"""Where a study keeps what witnesses answered, by tag.

Everything here is the author's copy: what makes it stand is a signature in
it, or asking the witness again.
"""

from __future__ import annotations

LOCAL_LOG = "evidence/witness/local/push-log.jsonl"
SERVER_LOG = "evidence/witness/server/push-log.jsonl"
SERVER_CHECKPOINT = "evidence/witness/server/checkpoint.json"
GITHUB_FOLDER = "evidence/witness/github"
TIMESTAMP_FOLDER = "evidence/timestamps"
BEACON_FOLDER = "evidence/beacon"
RELEASE_FOLDER = "evidence/releases"


def tag_stem(tag: str) -> str:
    """`reg-e2.v1` for the tag `reg/e2/v1`, `ledger.v1` for `ledger/v1`: how its
    files are named.
    """
    stem, _, version = tag.rpartition("/")
    return f"{stem.replace('/', '-')}.{version}"


def github_answers_path(name: str) -> str:
    """The raw answers of GitHub that were asked for `name`, a tag's stem or a
    batch of attempts.
    """
    return f"{GITHUB_FOLDER}/{name}.json"


def timestamp_path(tag: str, number: int) -> str:
    """The token of the study's timestamp authority `number`, from 1."""
    return f"{TIMESTAMP_FOLDER}/{tag_stem(tag)}.{number}.tsr"


def release_path(tag: str) -> str:
    """GitHub's attestation of a release of this tag, a sigstore bundle."""
    return f"{RELEASE_FOLDER}/{tag_stem(tag)}.json"


def beacon_path(chain_hash: str, round_number: int) -> str:
    """The raw answer of a drand round."""
    return f"{BEACON_FOLDER}/{chain_hash}/{round_number}.json"
