"""A batch of attempts for jobs: one file that says everything, written before
they are submitted, and one with their job ids, written after.

`runs/<registration>/.jobs/<batch>/`: `batch.json`, `jobs.json`, and `submitit/`
with scripts, calls and logs. All of it is local: what is evidence of it stands in
the attempts' own records.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from artifacts.attempt import attempt_folder, write_whole
from registry.beacon import BeaconValue
from registry.canonical import load_json
from registry.design import RunId
from registry.errors import RecordError, TrapError

SCHEMA = "trap-batch-1"
JOBS_FOLDER = ".jobs"
BATCH_FILE, SUBMITTED_FILE, LOGS_FOLDER = "batch.json", "jobs.json", "submitit"


@dataclass(frozen=True)
class Reserved:
    """The attempts `attempt` .. `last_attempt` of a run, announced for one job."""

    run: RunId
    attempt: int
    last_attempt: int

    @property
    def attempts(self) -> range:
        """The reserved numbers."""
        return range(self.attempt, self.last_attempt + 1)


@dataclass(frozen=True)
class Batch:
    """What jobs need to make their attempts. `runs` is the folder of the
    registration's runs, `root` the study's. A job's time limit is `limit_s`;
    it is warned `warn_s` before.
    """

    token: str
    registration: bytes
    runs: Path
    root: Path
    beacon: BeaconValue | None
    reserved: tuple[Reserved, ...]
    limit_s: int
    warn_s: int

    @property
    def folder(self) -> Path:
        """The batch's own."""
        return self.runs / JOBS_FOLDER / self.token

    @property
    def logs(self) -> Path:
        """Where submitit keeps scripts, calls and logs."""
        return self.folder / LOGS_FOLDER

    def attempt(self, index: int, number: int) -> Path:
        """The folder of an attempt of the job at `index`."""
        return attempt_folder(self.runs.parent, self.runs.name, self.reserved[index].run.path, number)


def write_batch(batch: Batch) -> Path:
    """Write batch.json whole; its path."""
    batch.logs.mkdir(parents=True)
    document = {
        "schema": SCHEMA,
        "registration": batch.registration.decode(),
        "root": os.path.relpath(batch.root, batch.folder),
        "beacon": asdict(batch.beacon) if batch.beacon else None,
        "reserved": [{**asdict(r.run), "attempt": r.attempt, "last_attempt": r.last_attempt} for r in batch.reserved],
        "limit_s": batch.limit_s,
        "warn_s": batch.warn_s,
    }
    path = batch.folder / BATCH_FILE
    write_whole(path, json.dumps(document, indent=1, allow_nan=False).encode())
    return path


def read_batch(file: Path) -> Batch:
    """Read batch.json; RecordError where it is not one."""
    value = _read(file)
    try:
        reserved = tuple(
            Reserved(RunId(r["arm"], r["rate"], r["seed"]), r["attempt"], r["last_attempt"]) for r in value["reserved"]
        )
        folder = file.absolute().parent
        return Batch(
            folder.name,
            value["registration"].encode(),
            folder.parent.parent,
            Path(os.path.normpath(folder / value["root"])),
            BeaconValue(**value["beacon"]) if value["beacon"] else None,
            reserved,
            int(value["limit_s"]),
            int(value["warn_s"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"not a batch: {error!r}", where=str(file), remedy=f"a file that trapkit run wrote, {SCHEMA}"
        ) from None


def write_jobs(batch: Batch, jobs: list[str], submitted_at: str) -> None:
    """Keep the job ids of a batch, one a reserved run, in order."""
    document = {"schema": SCHEMA, "submitted_at": submitted_at, "jobs": jobs}
    write_whole(batch.folder / SUBMITTED_FILE, json.dumps(document).encode())


def read_jobs(batch: Batch) -> list[str]:
    """The batch's job ids; none where it was never submitted, as far as is known."""
    try:
        found = _read(batch.folder / SUBMITTED_FILE)["jobs"]
    except (TrapError, KeyError):
        return []
    return [str(job) for job in found] if isinstance(found, list) and len(found) == len(batch.reserved) else []


def batches_of(runs: Path) -> list[Batch]:
    """The batches of a registration's runs, by token; broken files are left out."""
    found = []
    for file in sorted((runs / JOBS_FOLDER).glob(f"*/{BATCH_FILE}")):
        try:
            found.append(read_batch(file))
        except TrapError:
            continue
    return found


def _read(file: Path) -> dict[str, Any]:
    try:
        value = load_json(file.read_bytes(), str(file))
    except OSError as error:
        raise RecordError(f"the file cannot be read: {error.strerror}", where=str(file)) from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise RecordError("not a file of a batch", where=str(file), value=SCHEMA)
    return value
