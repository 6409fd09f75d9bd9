"""The attempts log: start and result records on the branch `attempts`.

Append-only: each push adds one JSON-lines file. A start record is pushed
before anything runs, so a run that never reports shows as abandoned for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any

from registry.canonical import canonical_bytes, load_json
from registry.design import RunId
from registry.errors import RegistrationError, TrapError
from registry.mirror import Mirror
from registry.timestamps import parse_timestamp

if TYPE_CHECKING:
    import git

BRANCH = "attempts"
FOLDER = "attempts"
SCHEMA = "trap-attempts-1"
PUSH_TRIES = 5
MAX_RESERVED = 1000
CAUSES = ("preempted", "node_failed", "engine_never_ready")
_FILE = re.compile(r"attempts/([0-9]{6})-(start|result)\.jsonl")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class AttemptRecord:
    """One line of the log.

    `event` is `start`, `complete` or `abandoned`. A start reserves attempts
    `attempt` .. `last_attempt`; a result speaks of `attempt` alone, and
    `run_sha256` is the digest of its run.json (complete ones only). `cause`
    is one of `CAUSES`, of an abandoned attempt whose own records show it.
    """

    event: str
    registration: str
    version: int
    digest: str
    arm: str
    rate: float | None
    seed: int
    attempt: int
    last_attempt: int
    batch: str
    time: str
    run_sha256: str | None = None
    late: bool = False
    reason: str | None = None
    cause: str | None = None

    @property
    def run(self) -> RunId:
        """The registered run that the record speaks of."""
        return RunId(self.arm, self.rate, self.seed)


@dataclass(frozen=True)
class AttemptLog:
    """The whole log: records in order, the commit that added each, and what
    breaks its form.
    """

    records: tuple[AttemptRecord, ...]
    problems: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()

    def of(self, registration: str, version: int) -> list[AttemptRecord]:
        """The records of one registration, in log order."""
        return [r for r in self.records if (r.registration, r.version) == (registration, version)]

    def commits_of_starts(self, registration: str, version: int) -> list[str]:
        """The commits that announced attempts of one registration."""
        found = zip(self.records, self.commits, strict=False)
        own = [c for r, c in found if (r.registration, r.version, r.event) == (registration, version, "start")]
        return list(dict.fromkeys(own))


def encode(records: list[AttemptRecord]) -> bytes:
    """JSON lines, canonical, one record a line."""
    return b"".join(canonical_bytes({"schema": SCHEMA, **asdict(r)}) + b"\n" for r in records)


def decode(data: bytes, name: str) -> list[AttemptRecord]:
    """Records from a file of the log; TrapError for a malformed line."""
    return [
        _record(load_json(line, f"{name}, line {n}"), f"{name}, line {n}")
        for n, line in enumerate(data.splitlines(), 1)
    ]


def _record(value: Any, where: str) -> AttemptRecord:
    if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
        raise RegistrationError("not a record of the attempts log", where=where)
    try:
        record = AttemptRecord(**value)
    except TypeError as error:
        raise RegistrationError(f"not a record of the attempts log: {error}", where=where) from None
    if field := _malformed(record):
        raise RegistrationError(
            "a malformed record of the attempts log", where=f"{where}, field {field}", value=value.get(field)
        )
    return record


def _malformed(record: AttemptRecord) -> str | None:
    """The first field that cannot be what it should be."""
    numbers = {name: getattr(record, name) for name in ("version", "seed", "attempt", "last_attempt")}
    texts = {name: getattr(record, name) for name in ("registration", "arm", "batch")}
    wrong = {
        "event": record.event not in ("start", "complete", "abandoned"),
        "time": parse_timestamp(record.time) is None,
        "digest": not _is_sha256(record.digest),
        **{name: type(text) is not str for name, text in texts.items()},
        **{name: type(n) is not int or n < (name != "seed") for name, n in numbers.items()},
        "rate": record.rate is not None and (type(record.rate) not in (int, float) or record.rate <= 0),
        "run_sha256": not (_is_sha256(record.run_sha256) if record.event == "complete" else record.run_sha256 is None),
        "late": type(record.late) is not bool,
        "reason": type(record.reason) not in (str, NoneType),
        "cause": record.cause is not None and (record.event != "abandoned" or record.cause not in CAUSES),
    }
    if not any(wrong.values()) and not _reserves(record):
        return "last_attempt"
    return next((name for name, is_wrong in wrong.items() if is_wrong), None)


def _reserves(record: AttemptRecord) -> bool:
    """A start reserves a short range of attempts, a result speaks of one."""
    longest = MAX_RESERVED if record.event == "start" else 1
    return 0 <= record.last_attempt - record.attempt < longest


def _is_sha256(text: object) -> bool:
    return isinstance(text, str) and bool(_SHA256.fullmatch(text))


def read_log(mirror: Mirror, remote: str, witnessed: Sequence[str] = ()) -> AttemptLog:
    """The log in a mirror: the local branch, else the remote's; `witnessed` is
    the last commits of it that witnesses saw pushed.
    """
    refs = mirror.refs()
    names = (f"refs/heads/{BRANCH}", f"refs/remotes/{remote}/{BRANCH}")
    tips = [refs[name][0] for name in names if name in refs]
    if not tips:
        return AttemptLog(())
    # A branch that was not pulled is stale, not rewritten, where the other has it all.
    whole = [tip for tip in tips if all(_holds(mirror, tip, commit) for commit in witnessed)]
    return _read(mirror, (whole or tips)[0], witnessed)


def _holds(mirror: Mirror, tip: str, commit: str) -> bool:
    return tip == commit or mirror.is_ancestor(commit, tip) is True


def _read(mirror: Mirror, commit: str, witnessed: Sequence[str]) -> AttemptLog:
    problems = [
        f"{path} was changed after it was pushed (commit {c[:12]}, {status})"
        for c, status, path in mirror.changes(commit)
    ]
    problems += [
        f"the log does not hold what the witness saw pushed (commit {seen[:12]}); if only behind: git fetch"
        for seen in witnessed
        if not _holds(mirror, commit, seen)
    ]
    paths = mirror.list_files(commit, FOLDER)
    added = mirror.additions(commit, FOLDER)
    if mirror.has_merges(commit) or [path for path, _ in added if path in set(paths)] != paths:
        problems.append("the files of the log were not pushed one after the other, in the order of their numbers")
    records: list[AttemptRecord] = []
    commits: list[str] = []
    added_by = dict(added)
    for path in paths:
        data = mirror.blob(commit, path) if _FILE.fullmatch(path) else None
        if data is None:
            problems.append(f"{path} is not a file of the log")
            continue
        try:
            records += decode(data, path)
            commits += [added_by.get(path, "")] * (len(records) - len(commits))
        except TrapError as error:
            problems.append(f"{error.where}: {error.what}")
    return AttemptLog(tuple(records), tuple(problems), tuple(commits))


def append(repository: git.Repo, remote: str, kind: str, records: list[AttemptRecord]) -> None:
    """Push records as one new file; tried anew on top of what others pushed.

    RegistrationError after `PUSH_TRIES` rejections: then nothing may run.
    """
    from registry.publish import push, write_commit

    for attempt in range(PUSH_TRIES):
        tip = remote_tip(repository, remote)
        number = _next_number(repository, tip)
        path = f"{FOLDER}/{number:06d}-{kind}.jsonl"
        commit = write_commit(repository, tip, {path: encode(records)}, f"{kind} records {number}")
        try:
            push(repository, remote, [f"{commit}:refs/heads/{BRANCH}"], "the same command")
        except RegistrationError:
            if attempt == PUSH_TRIES - 1:
                raise
            continue
        repository.git.update_ref(f"refs/heads/{BRANCH}", commit)
        return


def remote_tip(repository: git.Repo, remote: str) -> str | None:
    """The log's last commit on the remote, fetched; None where there is none."""
    listed = str(repository.git.ls_remote(remote, f"refs/heads/{BRANCH}")).split()
    if not listed:
        return None
    repository.git.fetch("--quiet", remote, f"refs/heads/{BRANCH}")
    return str(listed[0])


def _next_number(repository: git.Repo, tip: str | None) -> int:
    if tip is None:
        return 1
    names = repository.git.ls_tree("--name-only", tip, "--", f"{FOLDER}/").splitlines()
    return 1 + max((int(m[1]) for name in names if (m := _FILE.fullmatch(name))), default=0)


def to_json(record: AttemptRecord) -> dict[str, Any]:
    """The record as a plain JSON value, for reports."""
    value: dict[str, Any] = json.loads(canonical_bytes(asdict(record)))
    return value
