"""Gathers what a verification judges: the edge where git and files are read.

Everything comes out of a mirror clone of one's own; run files come from
folders and are read later, attempt by attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from registry.attempt_log import BRANCH, AttemptLog, read_log
from registry.errors import StudyError, TrapError
from registry.guarded_git import run_git
from registry.mirror import Mirror, mirror_of
from registry.predictions import Predictions, read_predictions
from registry.registration import Registration, read_registration
from registry.study_settings import STUDY_FILE, StudySettings, parse_settings
from registry.tags import TagObject, parse_tag, parse_tag_name
from registry.witness.local import ARCHIVE, live_log, parse_log
from registry.witness.rows import PushRow, rows_of

TAG_PREFIX = "refs/tags/"
FOLDERS = {"reg": "registrations", "pred": "predictions"}


@dataclass(frozen=True)
class WitnessLog:
    """The local witness's rows, and what is wrong with them.

    `source` says whose copy was read; `problem` a contradiction between the
    archived copy and the live log.
    """

    rows: tuple[PushRow, ...]
    source: str
    problem: str | None = None


@dataclass(frozen=True)
class TagEvidence:
    """All there is about one tag, of a registration or of predictions.

    `oid` is None where the tag is gone, `tag` None where it is no annotated
    tag (`problem` says what it is). `frozen` and `at_head` are the bytes of
    the tagged file in the tagged commit and at the study's head, read as
    `registration` or `predictions`.
    """

    name: str
    id: str
    version: int
    oid: str | None
    tag: TagObject | None
    problem: str | None
    frozen: bytes | None
    at_head: bytes | None
    registration: Registration | None
    predictions: Predictions | None
    rows: tuple[PushRow, ...]


@dataclass(frozen=True)
class StudyEvidence:
    """What a study's repository holds, read once."""

    root: Path
    settings: StudySettings
    head: str
    tags: tuple[TagEvidence, ...]
    predictions: tuple[TagEvidence, ...]
    log: AttemptLog
    witness: WitnessLog


def gather(root: Path) -> StudyEvidence:
    """Read a study's repository through a mirror; StudyError where none is."""
    with mirror_of(root) as mirror:
        head = mirror.head()
        text = mirror.blob(head, STUDY_FILE) if head else None
        if head is None or text is None:
            raise StudyError("the repository's head holds no study.yaml", where=str(root), remedy="commit study.yaml")
        settings = parse_settings(text)
        witness = _witness_log(mirror, head, root, settings.remote)
        return StudyEvidence(
            root=root,
            settings=settings,
            head=head,
            tags=tuple(_tags(mirror, head, witness, "reg")),
            predictions=tuple(_tags(mirror, head, witness, "pred")),
            log=read_log(mirror, settings.remote, _last_pushed(witness)),
            witness=witness,
        )


def _witness_log(mirror: Mirror, head: str, root: Path, remote: str) -> WitnessLog:
    archived = mirror.blob(head, ARCHIVE)
    url = run_git(["config", "--local", "--get", f"remote.{remote}.url"], root, check=False).stdout
    try:
        live = live_log(url.decode("utf-8", "replace").strip()) if url else None
        rows = parse_log(live if live is not None else archived or b"", ARCHIVE)
    except TrapError as error:
        return WitnessLog((), "unreadable", f"{error.where}: {error.what}")
    if live is None:
        return WitnessLog(tuple(rows), "none" if archived is None else "archived by the author")
    problem = None
    if archived is not None and not live.startswith(archived):
        problem = "the archived push log is not the beginning of the witness's own: one of them was rewritten"
    return WitnessLog(tuple(rows), "the author's machine", problem)


def _last_pushed(witness: WitnessLog) -> str | None:
    """The last commit of the attempts log that the witness saw pushed."""
    rows = rows_of(witness.rows, f"refs/heads/{BRANCH}")
    return rows[-1].after if rows and not rows[-1].deletion else None


def _tags(mirror: Mirror, head: str, witness: WitnessLog, kind: str) -> list[TagEvidence]:
    """Every tag of a kind that the refs, the witness or the head's files name."""
    refs, folder = mirror.refs(), FOLDERS[kind]
    names = {ref.removeprefix(TAG_PREFIX) for ref in refs if ref.startswith(TAG_PREFIX)}
    names |= {row.ref.removeprefix(TAG_PREFIX) for row in witness.rows if row.ref.startswith(TAG_PREFIX)}
    for path in mirror.list_files(head, folder):
        identity, _, version = path.removeprefix(f"{folder}/").removesuffix(".json").rpartition(".v")
        names.add(f"{kind}/{identity}/v{version}")
    found = sorted((*parsed, name) for name in names if (parsed := parse_tag_name(name, kind)))
    return [
        _tag(mirror, refs.get(TAG_PREFIX + name, (None, "missing")), head, identity, version, name, witness)
        for identity, version, name in found
    ]


def _tag(
    mirror: Mirror,
    ref: tuple[str | None, str],
    head: str,
    identity: str,
    version: int,
    name: str,
    witness: WitnessLog,
) -> TagEvidence:
    path = f"{FOLDERS[name.partition('/')[0]]}/{identity}.v{version}.json"
    tag, problem = _tag_object(mirror, *ref)
    frozen = mirror.blob(tag.commit, path) if tag else None
    registration, predictions = None, None
    if frozen is not None:
        try:
            if name.startswith("reg/"):
                registration = read_registration(frozen, path)
            else:
                predictions = read_predictions(frozen, path)
        except TrapError as error:
            problem = error.diagnostics()
    return TagEvidence(
        name=name,
        id=identity,
        version=version,
        oid=ref[0],
        tag=tag,
        problem=problem,
        frozen=frozen,
        at_head=mirror.blob(head, path),
        registration=registration,
        predictions=predictions,
        rows=tuple(rows_of(witness.rows, TAG_PREFIX + name)),
    )


def _tag_object(mirror: Mirror, oid: str | None, kind: str) -> tuple[TagObject | None, str | None]:
    """The annotated tag, or what stands in its place."""
    if oid is None:
        return None, "the tag is not in the repository"
    if kind != "tag":
        return None, "a lightweight tag, not a tag object"
    try:
        return parse_tag(mirror.object_bytes(oid, "tag") or b""), None
    except TrapError as error:
        return None, error.what
