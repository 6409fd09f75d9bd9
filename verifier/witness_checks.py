"""The checks that rest on witnesses: who saw the push, and what came after it.

Each is a pure function of evidence already read. Independent witnesses count
before the author's copies, and the server's own order of pushes before any
clock of the author.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from registry.attempt_log import BRANCH, AttemptLog
from registry.registration import Registration
from registry.timestamps import moment
from registry.witness.rows import PushRow, in_order
from registry.witness.sightings import PushLog
from verifier.check import Check, proven, refuted, unprovable
from verifier.draws import Draw
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.run_report import RunReport
from verifier.status import Status


def check_push(evidence: TagEvidence, logs: Sequence[PushLog]) -> Check:
    """A witness saw the tag pushed. Two objects for one tag are a contradiction."""
    name = "push_witnessed"
    problem = next((log.problem for log in logs if log.problem), None)
    if problem:
        return refuted(name, problem)
    moved = next((words for log in logs if (words := _moved(evidence, log))), None)
    if moved:
        return refuted(name, moved)
    push = evidence.push
    if push is None:
        return unprovable(name, "no witness saw this tag pushed")
    return proven(name, f"pushed {push.time}, by the clock of the {push.witness} ({push.source})")


def _moved(evidence: TagEvidence, log: PushLog) -> str | None:
    """What contradicts the tag in a log that has tags."""
    rows = log.rows_of(f"refs/tags/{evidence.name}")
    move = next((row for row in rows if row.after != rows[0].after), None)
    if move:
        word = "deleted" if move.deletion else "moved to another object"
        return f"the tag was {word} at {move.timestamp}, after its push at {rows[0].timestamp}"
    if rows and evidence.oid not in (None, rows[0].after):
        return f"the tag in the repository is not the object that the {log.witness} saw pushed"
    return None


def check_independent(evidence: TagEvidence, status: Status, claim: str) -> Check:
    """A witness of the auditor's policy shows the order; a claim below
    pre-registered does not need it.
    """
    name, needed = "independently_witnessed", claim == "pre-registered"
    if status.name == "pre-registered":
        return proven(name, status.reason, needed)
    if status.name in ("void", "retrospective"):
        return refuted(name, status.reason, needed)
    return unprovable(name, "; ".join((status.reason, *evidence.unusable)), needed)


def check_beacon(registration: Registration | None, draw: Draw, evidence: TagEvidence) -> Check:
    """The beacon came after the push. With literal seeds, or plans of another,
    there is nothing to wait for.
    """
    name = "drawn_after_push"
    if registration is None:
        return unprovable(name, "there is no registration")
    if registration.plan_source:
        words = f"the plans of {registration.plan_source.tag}, older than this: the order rests on run clocks"
        return unprovable(name, words, needed=False)
    if not registration.waits_for_beacon:
        return unprovable(name, "literal seeds: the order rests on run clocks", needed=False)
    if draw.refuted:
        return refuted(name, draw.refuted)
    if draw.value is None or draw.missing:
        return unprovable(name, draw.missing or "not drawn yet")
    if draw.out_at is None:
        return proven(name, f"random bytes drawn at the tag's first push, by its witness ({draw.value.source})")
    seen = evidence.push or next(iter(evidence.sightings), None)
    if seen is None:
        return unprovable(name, f"no witness says that it was pushed before round {draw.value.round}")
    words = f"seen {seen.time} by the {seen.witness}; round {draw.value.round} was out at {draw.out_at}"
    if moment(seen.time) >= moment(draw.out_at):
        if not seen.dated:
            return unprovable(name, f"{words}: a latest time, since rows before it may be missing")
        return refuted(name, f"{words}: not before it")
    return proven(name, words)


def check_log(evidence: StudyEvidence, tag: TagEvidence) -> Check:
    """The attempts log only grew, was seen pushed, and speaks of registered runs."""
    name, log = "attempts_log", evidence.log
    for row in (row for pushes in evidence.logs for row in pushes.rows_of(f"refs/heads/{BRANCH}")):
        if row.activity_type in ("force_push", "branch_deletion"):
            return refuted(name, f"the log's branch was rewritten ({row.activity_type}) at {row.timestamp}")
    if log.problems:
        return refuted(name, log.problems[0])
    assert tag.registration is not None
    known = set(tag.registration.draft.design.run_ids())
    for record in log.of(tag.id, tag.version):
        if record.digest != tag.registration.digest:
            return refuted(name, f"a record of {record.run.path} names another registration digest")
        if record.run not in known:
            return refuted(name, f"a record of {record.run.path}, which is not a registered run")
    unseen = _unseen(log, tag, evidence.logs)
    if unseen:
        return unprovable(name, f"no witness saw commit {unseen[:12]} of the log pushed: run again to push and archive")
    return proven(name, "append-only, and all its records are of registered runs")


def _unseen(log: AttemptLog, tag: TagEvidence, logs: Sequence[PushLog]) -> str | None:
    """A commit with records of the registration that no witness saw."""
    own = zip(log.records, log.commits, strict=False)
    commits = (commit for r, commit in own if (r.registration, r.version) == (tag.id, tag.version))
    return next((commit for commit in commits if not any(commit in pushes.first for pushes in logs)), None)


def first_start(evidence: StudyEvidence, identity: str, version: int, log: PushLog) -> PushRow | None:
    """The row of one log by which the first attempt had been announced."""
    commits = evidence.log.commits_of_starts(identity, version)
    rows = in_order(log.first[commit] for commit in commits if commit in log.first)
    return rows[0] if rows else None


def check_run_clocks(evidence: StudyEvidence, tag: TagEvidence, reports: Sequence[RunReport]) -> Check:
    """Where order rests on run clocks: no run says that it began before a
    witness had its start record, which was pushed before it could begin.
    """
    name, registration = "run_clocks", tag.registration
    if registration is None or registration.waits_for_beacon:
        return proven(name, "the beacon shows the order: no clock of the author's is needed", needed=False)
    allowance = timedelta(seconds=evidence.policy.run_clock_allowance_s)
    own = {
        (r.run, r.attempt): commit
        for r, commit in zip(evidence.log.records, evidence.log.commits, strict=False)
        if (r.registration, r.version, r.event) == (tag.id, tag.version, "start")
    }
    for report in reports:
        commit = own.get((report.run, report.attempt or 0), "")
        rows = [log.first[commit] for log in evidence.logs if commit in log.first]
        begun = report.started_at
        late = next((row for row in rows if begun and moment(begun) < moment(row.timestamp) - allowance), None)
        if late:
            words = f"{report.run.path} says that it began {begun}, and was announced {late.timestamp} only"
            return unprovable(name, f"{words}: its clock does not agree with the witness's")
    return proven(name, "no run says that it began before it was announced")


def check_before_runs(tag: TagEvidence, evidence: StudyEvidence) -> Check:
    """A witness saw the predictions pushed before the first start record, by
    that witness's own order; the records' times, too, must not contradict it.
    """
    name = "before_any_run"
    push = tag.push
    if push is None:
        return unprovable(name, "no witness saw the predictions pushed")
    starts = [r.time for r in evidence.log.of(tag.id, tag.version) if r.event == "start"]
    first = min(starts, key=moment, default=None)
    for log in sorted(evidence.logs, key=lambda log: not log.independent):
        rows = log.of_tag(tag.name, tag.oid, tag.tag.commit if tag.tag else None)
        start = first_start(evidence, tag.id, tag.version, log)
        if rows and start and moment(start.timestamp) <= moment(rows[0].timestamp):
            pushed = f"the predictions were pushed {rows[0].timestamp} ({log.witness})"
            return refuted(name, f"a run was announced {start.timestamp}, {pushed}")
    if first is not None and moment(first) <= moment(push.time):
        return refuted(name, f"a run was started {first}, the predictions were pushed {push.time}")
    return proven(name, f"pushed {push.time}, before any run was started")
