"""Gathers what a verification judges: the edge where git and files are read.

Everything comes out of a mirror clone of one's own; run files come from
folders and are read later, attempt by attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from registry.attempt_log import AttemptLog, read_log
from registry.errors import StudyError, TrapError
from registry.mirror import Mirror, mirror_of, run_git
from registry.registration import Registration, read_registration
from registry.study import STUDY_FILE, StudySettings, parse_settings
from registry.tags import TagObject, parse_tag, parse_tag_name
from registry.witness.local import ARCHIVE, PushRow, live_log, parse_log, rows_of

TAG_PREFIX = "refs/tags/"


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
    """All there is about one registration tag.

    `oid` is None where the tag is gone, `tag` None where it is no annotated
    tag (`problem` says what it is). `frozen` and `at_head` are the bytes of
    the registration file in the tagged commit and at the study's head.
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
    rows: tuple[PushRow, ...]


@dataclass(frozen=True)
class StudyEvidence:
    """What a study's repository holds, read once."""

    root: Path
    settings: StudySettings
    head: str
    tags: tuple[TagEvidence, ...]
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
            tags=tuple(_tags(mirror, head, witness)),
            log=read_log(mirror, settings.remote),
            witness=witness,
        )


def _witness_log(mirror: Mirror, head: str, root: Path, remote: str) -> WitnessLog:
    archived = mirror.blob(head, ARCHIVE)
    url = run_git(["config", "--local", "--get", f"remote.{remote}.url"], root, check=False).stdout
    try:
        live = live_log(url.decode().strip()) if url else None
        rows = parse_log(live if live is not None else archived or b"", ARCHIVE)
    except TrapError as error:
        return WitnessLog((), "unreadable", f"{error.where}: {error.what}")
    if live is None:
        return WitnessLog(tuple(rows), "none" if archived is None else "archived by the author")
    problem = None
    if archived is not None and not live.startswith(archived):
        problem = "the archived push log is not the beginning of the witness's own: one of them was rewritten"
    return WitnessLog(tuple(rows), "the author's machine", problem)


def _tags(mirror: Mirror, head: str, witness: WitnessLog) -> list[TagEvidence]:
    refs = mirror.refs()
    names = {ref.removeprefix(TAG_PREFIX) for ref in refs if ref.startswith(TAG_PREFIX)}
    names |= {row.ref.removeprefix(TAG_PREFIX) for row in witness.rows if row.ref.startswith(TAG_PREFIX)}
    for path in mirror.list_files(head, "registrations"):
        identity, _, version = path.removeprefix("registrations/").removesuffix(".json").rpartition(".v")
        names.add(f"reg/{identity}/v{version}")
    found = [(parsed, name) for name in names if (parsed := parse_tag_name(name))]
    return [_tag(mirror, head, refs, name, *parsed, witness) for parsed, name in sorted(found)]


def _tag(
    mirror: Mirror,
    head: str,
    refs: dict[str, tuple[str, str]],
    name: str,
    identity: str,
    version: int,
    witness: WitnessLog,
) -> TagEvidence:
    path = f"registrations/{identity}.v{version}.json"
    oid, kind = refs.get(TAG_PREFIX + name, (None, "missing"))
    tag, problem = None, None
    if oid is None:
        problem = "the tag is not in the repository"
    elif kind != "tag":
        problem = "a lightweight tag, not a tag object"
    else:
        try:
            tag = parse_tag(mirror.object_bytes(oid, "tag") or b"")
        except TrapError as error:
            problem = error.what
    frozen = mirror.blob(tag.commit, path) if tag else None
    registration = None
    if frozen is not None:
        try:
            registration = read_registration(frozen, path)
        except TrapError as error:
            problem = error.diagnostics()
    return TagEvidence(
        name,
        identity,
        version,
        oid,
        tag,
        problem,
        frozen,
        mirror.blob(head, path),
        registration,
        tuple(rows_of(witness.rows, TAG_PREFIX + name)),
    )
