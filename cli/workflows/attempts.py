"""Attempts as the author sees them: the pushed log and the folders on disk."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from operator import itemgetter
from pathlib import Path

import git

from artifacts.attempt import (
    RUN_FILE,
    abandoned_cause,
    abandoned_reason,
    attempt_folder,
    attempt_numbers,
    is_complete,
    sha256_file,
)
from registry.attempt_log import BRANCH, AttemptRecord, decode
from registry.design import RunId
from registry.git_objects import ObjectReader
from registry.registration import Registration
from registry.study import Study
from registry.timestamps import now


def records_of(repository: git.Repo, study: Study, registration: Registration) -> dict[RunId, list[AttemptRecord]]:
    """The attempts log of a registration, fetched from the remote."""
    found: dict[RunId, list[AttemptRecord]] = defaultdict(list)
    remote = study.settings.remote
    if not repository.git.ls_remote(remote, f"refs/heads/{BRANCH}"):
        return found
    repository.git.fetch("--quiet", remote, f"+refs/heads/{BRANCH}:refs/remotes/{remote}/{BRANCH}")
    tip = f"refs/remotes/{remote}/{BRANCH}"
    listed = [line.partition("\t") for line in repository.git.ls_tree(tip, "--", "attempts/").splitlines()]
    with closing(ObjectReader(Path(repository.git_dir))) as objects:
        for entry, _, path in sorted(listed, key=itemgetter(2)):
            blob = objects.read(entry.split()[2])
            for record in decode(blob[1] if blob else b"", path):
                if record.digest == registration.digest:
                    found[record.run].append(record)
    return found


def result_record(
    study: Study,
    registration: Registration,
    run: RunId,
    attempt: int,
    batch: str,
    reason: str,
    *,
    late: bool = False,
    cause: str | None = None,
) -> AttemptRecord:
    """What became of one attempt, judged by its own folder.

    `reason` and `cause` are what others say of one whose folder says nothing.
    """
    folder = attempt_folder(study.runs, registration.folder, run.path, attempt)
    complete = is_complete(folder)
    return attempt_record(
        registration,
        run,
        attempt,
        batch,
        "complete" if complete else "abandoned",
        run_sha256=sha256_file(folder / RUN_FILE) if complete else None,
        late=late,
        reason=None if complete else abandoned_reason(folder) or reason,
        cause=None if complete else abandoned_cause(folder) or cause,
    )


def attempt_record(
    registration: Registration,
    run: RunId,
    attempt: int,
    batch: str,
    event: str,
    *,
    last_attempt: int | None = None,
    run_sha256: str | None = None,
    late: bool = False,
    reason: str | None = None,
    cause: str | None = None,
) -> AttemptRecord:
    """A record of the attempts log, stamped with this machine's clock."""
    return AttemptRecord(
        event,
        registration.id,
        registration.version,
        registration.digest,
        run.arm,
        run.rate,
        run.seed,
        attempt,
        last_attempt or attempt,
        batch,
        now(),
        run_sha256,
        late,
        reason,
        cause,
    )


def next_attempt(study: Study, registration: Registration, run: RunId, records: list[AttemptRecord]) -> int:
    """The next free attempt number, by the log and by the disk.

    Of the numbers that a start reserves the first is used up with it; the
    others are only where a folder or a result shows it.
    """
    on_disk = attempt_numbers(study.runs / registration.folder / run.path)
    return 1 + max([*on_disk, *(record.attempt for record in records)], default=0)
