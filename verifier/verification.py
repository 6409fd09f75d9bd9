"""Verifies a study: every registration and every prediction tag, one proof each.

Simulated runs are executed again in other processes while the records are
judged here.
"""

from __future__ import annotations

from pathlib import Path

from registry.bundle import bundled
from registry.design import RunId
from registry.errors import TrapError
from registry.predictions import Values
from registry.witness.sightings import PushLog
from verifier.attempts import deciding
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.prediction_proof import prove_predictions
from verifier.predictors import evaluate, simulated_runs
from verifier.proof import drawable, prove_registration, records_by_run
from verifier.reexecution import Job, Rerun, rerun
from verifier.report import Proof, StudyReport
from verifier.run_report import frames_of, read
from verifier.verdict import Readings

Places = dict[tuple[str, RunId], int]


def verify_study(
    evidence: StudyEvidence, runs: Path, only: str | None = None, with_series: bool = False
) -> StudyReport:
    """Verify every registration of a study, or `only` one id and what it
    quotes. `runs` is the folder of run files. `with_series`: the runs have
    their series, too.
    """
    tags = _in_order(_selected(evidence.tags, only))
    predictions = [tag for tag in evidence.predictions if only is None or tag.id in {t.id for t in tags}]
    jobs, places = _jobs(tags, evidence, runs, {(tag.id, tag.version) for tag in predictions})
    proofs: dict[str, Proof] = {}
    with rerun(jobs) as executions:
        for tag in tags:
            proofs[tag.name] = prove_registration(tag, evidence, runs, proofs, executions, places, with_series)
        for tag in predictions:
            registered = next((t for t in tags if (t.id, t.version) == (tag.id, tag.version)), None)
            again = _evaluate_again(registered, executions, places)
            proof = proofs.get(registered.name) if registered else None
            proofs[tag.name] = prove_predictions(tag, evidence, proof, again)
    return StudyReport(
        study=evidence.settings.name,
        head=evidence.head,
        proofs=[proofs[tag.name] for tag in sorted((*tags, *predictions), key=lambda t: (t.id, t.version, t.name))],
        witness_source=evidence.witness_source,
        log_problems=(*evidence.log.problems, *_orphans(evidence)),
        exploratory=_exploratory(runs),
        unseen=tuple(dict.fromkeys(words for log in evidence.logs for words in _unseen(log))),
    )


def _unseen(log: PushLog) -> list[str]:
    """The pushes of a log whose commits the repository lacks."""
    return [f"{row.ref} at {row.timestamp} ({log.witness}): commit {row.after[:12]}" for row in log.unseen]


def _selected(tags: tuple[TagEvidence, ...], only: str | None) -> list[TagEvidence]:
    if only is None:
        return list(tags)
    wanted, size = {only}, 0
    while len(wanted) > size:
        size = len(wanted)
        wanted |= {quoted for tag in tags if tag.id in wanted for quoted in _quoted(tag)}
    return [tag for tag in tags if tag.id in wanted]


def _quoted(tag: TagEvidence) -> set[str]:
    """The ids that a registration quotes: its calibration, its plans' source."""
    registration = tag.registration
    named = (registration.calibration, registration.plan_source) if registration else ()
    return {quote.registration for quote in named if quote}


def _in_order(tags: list[TagEvidence]) -> list[TagEvidence]:
    """What others quote comes first."""

    def depth(tag: TagEvidence) -> int:
        registration = tag.registration
        return 2 * bool(registration and registration.plan_source) + bool(registration and registration.calibration)

    return sorted(tags, key=lambda tag: (depth(tag), tag.id, tag.version))


def _jobs(
    tags: list[TagEvidence], evidence: StudyEvidence, runs: Path, predicted: set[tuple[str, int]]
) -> tuple[list[Job], Places]:
    """Every decided run, and every run that a simulator predicts, as jobs to
    execute again.
    """
    jobs: list[Job] = []
    places: Places = {}
    for tag in tags:
        beacon = tag.draw.value
        if tag.registration is None or tag.frozen is None or not drawable(tag.registration, beacon):
            continue
        known = set(tag.registration.draft.design.run_ids())
        records = records_by_run(evidence.log, tag) if runs.is_dir() else {}
        real = tag.registration.engine is not None
        wanted = [run for run, own in records.items() if deciding(own) and run in known and not real]
        if (tag.id, tag.version) in predicted:
            wanted += simulated_runs(tag.registration)
        for run in dict.fromkeys(wanted):
            places[tag.name, run] = len(jobs)
            jobs.append(Job(bundled(tag.frozen, tag.scripts), run, tag.registration.plan_key(run.seed, beacon)))
    return jobs, places


def _evaluate_again(tag: TagEvidence | None, executions: Rerun, places: Places) -> Values | None:
    """The registration's predictors, evaluated now; None where they cannot be."""
    if tag is None or tag.registration is None or not drawable(tag.registration, tag.draw.value):
        return None
    registration = tag.registration

    def simulated(run: RunId) -> Readings:
        tables = executions.tables(places[tag.name, run])
        if tables is None:
            raise TrapError("the simulated run could not be executed again", where=run.path)
        return read(frames_of(tables), registration, run)

    try:
        return evaluate(registration, tag.draw.value, simulated)
    except (TrapError, ArithmeticError, ValueError):
        return None


def _orphans(evidence: StudyEvidence) -> list[str]:
    """Attempt records of registrations that are not in the repository."""
    known = {(tag.id, tag.version) for tag in evidence.tags}
    strays = {(r.registration, r.version) for r in evidence.log.records} - known
    return [
        f"attempts of reg/{identity}/v{version} are logged, and it has no tag" for identity, version in sorted(strays)
    ]


def _exploratory(runs: Path) -> list[str]:
    folder = runs / "exploratory"
    found = (str(p.parent.relative_to(folder)) for p in folder.glob("*/*/*/*/attempt-*/run.json"))
    return sorted(path.encode("utf-8", "replace").decode() for path in found)
