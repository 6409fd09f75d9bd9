"""Gathers what a verification judges: the edge where git and files are read.

Everything comes out of a mirror clone of one's own; run files come from
folders and are read later, attempt by attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from registry.attempt_log import BRANCH, AttemptLog, read_log
from registry.bundle import bundled, scripts_beside
from registry.canonical import sha256_hex
from registry.errors import CapExceeded, StudyError, TrapError
from registry.mirror import Mirror, mirror_of
from registry.predictions import Predictions, read_predictions
from registry.registration import Registration, read_registration
from registry.study_settings import STUDY_FILE, StudySettings, parse_settings
from registry.tags import TagObject, parse_tag, parse_tag_name
from registry.witness.policy import BUILT_IN, Policy
from registry.witness.rows import PushRow, in_order
from registry.witness.sightings import PushLog, Sighting, by_weight
from verifier.draws import Draw, draw_of
from verifier.github_logs import compared, status_sightings
from verifier.online import Ask, Hours, Online
from verifier.push_logs import push_logs
from verifier.stamps import Tagged, signed_sightings

TAG_PREFIX = "refs/tags/"
FOLDERS = {"reg": "registrations", "pred": "predictions"}


@dataclass(frozen=True)
class TagEvidence:
    """All there is about one tag, of a registration or of predictions.

    `oid` is None where the tag is gone, `tag` None where it is no annotated
    tag (`problem` says what it is). `frozen` and `at_head` are the bytes of
    the tagged file in the tagged commit and at the study's head, read as
    `registration` or `predictions`. `rows` are the tag's rows in logs that
    have tags; `sightings` what witnesses saw of it, the weightiest first;
    `unusable` says why evidence that lies there is worth nothing. `contents`
    counts the different files that any commit ever held under its path;
    `over_cap` tells a file that is too much to read from a malformed one; `scripts`
    are the session scripts beside a registration.
    """

    name: str
    id: str
    version: int
    oid: str | None
    tag: TagObject | None
    problem: str | None
    over_cap: bool
    frozen: bytes | None
    contents: int
    at_head: bytes | None
    registration: Registration | None
    predictions: Predictions | None
    rows: tuple[PushRow, ...]
    sightings: tuple[Sighting, ...] = ()
    unusable: tuple[str, ...] = ()
    scripts: bytes | None = None
    draw: Draw = field(default_factory=Draw)

    @property
    def push(self) -> Sighting | None:
        """The weightiest sighting of its push, if there is one."""
        return next((sighting for sighting in self.sightings if sighting.pushed), None)


@dataclass(frozen=True)
class StudyEvidence:
    """What a study's repository holds, read once."""

    root: Path
    settings: StudySettings
    head: str
    tags: tuple[TagEvidence, ...]
    predictions: tuple[TagEvidence, ...]
    log: AttemptLog
    logs: tuple[PushLog, ...]
    policy: Policy

    @property
    def witness_source(self) -> str:
        """Whose copies of push logs were read."""
        return ", ".join(f"{log.witness}: {log.source}" for log in self.logs) or "none"


def gather(
    root: Path, policy: Policy = BUILT_IN, ask: Ask | None = None, hours: Hours | None = None, *, live: bool = True
) -> StudyEvidence:
    """Read a study's repository through a mirror; StudyError where none is.

    `ask` asks witnesses now, `hours` is a folder of GH Archive hours that the
    auditor fetched. Without `live` the log of a local witness on this machine
    is left alone, and only the study's copy is read.
    """
    with mirror_of(root) as mirror:
        head = mirror.head()
        text = mirror.blob(head, STUDY_FILE) if head else None
        if head is None or text is None:
            raise StudyError("the repository's head holds no study.yaml", where=str(root), remedy="commit study.yaml")
        settings = parse_settings(text)
        online = ask(settings, policy) if ask else Online()
        logs = push_logs(mirror, head, root if live else None, settings, policy, online, hours)
        if online.contains:
            logs = [compared(log, _tagged_commits(mirror), online.contains) for log in logs]
        reader = _Reader(mirror, head, settings, tuple(logs), policy, online)
        return StudyEvidence(
            root=root,
            settings=settings,
            head=head,
            tags=tuple(reader.tags("reg")),
            predictions=tuple(reader.tags("pred")),
            log=read_log(mirror, settings.remote, _last_pushed(logs)),
            logs=tuple(logs),
            policy=policy,
        )


def _tagged_commits(mirror: Mirror) -> list[str]:
    """The commits of all tags of registrations and predictions."""
    refs = mirror.refs().items()
    ours = (ref for name, ref in refs if name.startswith((f"{TAG_PREFIX}reg/", f"{TAG_PREFIX}pred/")))
    tags = (_tag_object(mirror, *ref)[0] for ref in ours)
    return [tag.commit for tag in tags if tag]


def _last_pushed(logs: Sequence[PushLog]) -> list[str]:
    """The last commit of the attempts log that each witness saw pushed."""
    last = (in_order(log.rows_of(f"refs/heads/{BRANCH}"))[-1:] for log in logs)
    return [row.after for rows in last for row in rows if not row.deletion]


class _Reader:
    """Reads the tags of one mirror."""

    def __init__(
        self,
        mirror: Mirror,
        head: str,
        settings: StudySettings,
        logs: tuple[PushLog, ...],
        policy: Policy,
        online: Online,
    ) -> None:
        self._mirror = mirror
        self._head = head
        self._settings = settings
        self._logs = logs
        self._policy = policy
        self._statuses = online.statuses
        self._refs = mirror.refs()
        self._contents: dict[str, frozenset[str]] = {}

    def tags(self, kind: str) -> list[TagEvidence]:
        """Every tag of a kind that refs, a witness or files of any commit name."""
        folder = FOLDERS[kind]
        names = {ref.removeprefix(TAG_PREFIX) for ref in self._refs if ref.startswith(TAG_PREFIX)}
        rows = (row for log in self._logs for row in log.rows)
        names |= {row.ref.removeprefix(TAG_PREFIX) for row in rows if row.ref.startswith(TAG_PREFIX)}
        self._contents |= self._mirror.contents(folder)
        for path in self._contents:
            identity, _, version = path.removeprefix(f"{folder}/").removesuffix(".json").rpartition(".v")
            names.add(f"{kind}/{identity}/v{version}")
        found = sorted((*parsed, name) for name in names if (parsed := parse_tag_name(name, kind)))
        return [self._tag(identity, version, name) for identity, version, name in found]

    def _tag(self, identity: str, version: int, name: str) -> TagEvidence:
        path = f"{FOLDERS[name.partition('/')[0]]}/{identity}.v{version}.json"
        ref = self._refs.get(TAG_PREFIX + name, (None, "missing"))
        tag, problem = _tag_object(self._mirror, *ref)
        frozen = self._mirror.blob(tag.commit, path) if tag else None
        registration, predictions, over_cap = None, None, False
        scripts = scripts_beside(frozen, partial(self._mirror.blob, tag.commit)) if tag else None
        if frozen is not None:
            try:
                if name.startswith("reg/"):
                    registration = read_registration(bundled(frozen, scripts), path)
                else:
                    predictions = read_predictions(frozen, path)
            except TrapError as error:
                problem, over_cap = error.diagnostics(), isinstance(error, CapExceeded)
        sightings, unusable = self._sightings(name, ref[0], tag, frozen)
        return TagEvidence(
            name=name,
            id=identity,
            version=version,
            oid=ref[0],
            tag=tag,
            problem=problem,
            over_cap=over_cap,
            frozen=frozen,
            contents=len(self._contents.get(path, ())),
            at_head=self._mirror.blob(self._head, path),
            registration=registration,
            predictions=predictions,
            rows=tuple(row for log in self._logs for row in log.rows_of(TAG_PREFIX + name)),
            sightings=sightings,
            unusable=unusable,
            scripts=scripts,
            draw=draw_of(registration, self._logs, self._file, self._policy) if registration else Draw(),
        )

    def _brought(self, log: PushLog, row: PushRow, commit: str | None) -> bool:
        """Whether a row is the push itself: its branch did not hold the commit
        before. Else an earlier row may be missing, and the time is a latest one.
        """
        if log.sees_tags or commit is None:
            return True
        if row.after == commit and (set(row.before) == {"0"} or row.before in self._mirror.parents_of(commit)):
            return True
        return set(row.before) != {"0"} and self._mirror.is_ancestor(commit, row.before) is False

    def _file(self, path: str) -> bytes | None:
        return self._mirror.blob(self._head, path)

    def _sightings(
        self, name: str, oid: str | None, tag: TagObject | None, frozen: bytes | None
    ) -> tuple[tuple[Sighting, ...], tuple[str, ...]]:
        commit = tag.commit if tag else None
        found = [
            log.sighting(row, self._brought(log, row, commit))
            for log in self._logs
            for row in log.of_tag(name, oid, commit)[:1]
        ]
        if commit and self._statuses and not any(sighting.independent for sighting in found):
            found += status_sightings(commit, self._statuses, self._settings)
        if oid is None or frozen is None:
            return tuple(by_weight(found)), ()
        number = self._settings.github.repository_id if self._settings.github else None
        signed, unusable = signed_sightings(
            Tagged(name, oid, str(commit), sha256_hex(frozen)), self._file, self._policy, number
        )
        return tuple(by_weight([*found, *signed])), tuple(unusable)


def _tag_object(mirror: Mirror, oid: str | None, kind: str) -> tuple[TagObject | None, str | None]:
    """The annotated tag, or what stands in its place."""
    if oid is None or kind != "tag":
        return None, "the tag is not in the repository" if oid is None else "a lightweight tag, not a tag object"
    try:
        return parse_tag(mirror.object_bytes(oid, "tag") or b""), None
    except TrapError as error:
        return None, error.what
