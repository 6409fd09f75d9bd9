"""Rule files tried out: rehearsals and exploratory runs, nothing pushed."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from artifacts.attempt import attempt_folder, attempt_numbers
from cli.workflows.rehearse import Rehearsal, provisional, rehearse, rehearsed_calibration
from cli.workflows.reporter import Reporter
from cli.workflows.run import Selection
from cli.workflows.trace_scripts import scripts_from
from registry.draft import Draft, load_draft
from registry.draft_workload import ScriptsFor
from registry.errors import StudyError
from registry.registration import Calibration, Registration, read_registration
from registry.study import Study
from registry.study_cells import cells_of
from runners.local_queue import run_all
from runners.run_one import AttemptOrder, check_can_run, execute


def load_rule_file(file: Path, scripts_for: ScriptsFor | None = None) -> Draft:
    """A rule file from disk, committed or not; the folder above its own may
    hold cells. `scripts_for` None: the trace that it may name is read.
    """
    if not file.is_file():
        raise StudyError("no such rule file", where=str(file), remedy="name a file below rules/")
    root = file.resolve().parent.parent
    return load_draft(file.read_bytes(), str(file), cells_of(root), scripts_for or scripts_from(root))


def simulated_calibration(
    draft: Draft, folder: Path, reporter: Reporter, scripts_for: ScriptsFor | None = None
) -> Calibration | None:
    """The calibration that a draft names, simulated over literal seeds; its
    rule file lies in `folder`, or ships with the product. `scripts_for` None:
    the trace that it may name is read.
    """
    if draft.calibration is None:
        return None
    name = f"{draft.calibration}.yaml"
    path = folder / name
    source = path if path.is_file() else resources.files("rules") / name
    if not source.is_file():
        raise StudyError(
            f"there is no rule file for the calibration {draft.calibration}",
            where=str(path),
            remedy=f"write rules/{name}",
        )
    scripts_for = scripts_for or scripts_from(folder.resolve().parent)
    return rehearsed_calibration(source.read_bytes(), str(source), draft, reporter, scripts_for=scripts_for)


def explore(study: Study, name: str, selection: Selection, reporter: Reporter) -> list[Path]:
    """Run a rule file, or the rule file of an id, without registering it."""
    file = Path(name) if name.endswith(".yaml") else study.root / "rules" / f"{name}.yaml"
    draft = load_rule_file(file)
    calibration = simulated_calibration(draft, study.root / "rules", reporter)
    data = provisional(draft, calibration)
    return run_exploratory(study, data, read_registration(data, str(file)), selection, reporter)


def rehearse_file(file: Path, reporter: Reporter, seeds: int) -> Rehearsal:
    """Rehearse a rule file from disk over `seeds` literal seeds."""
    draft = load_rule_file(file)
    return rehearse(draft, simulated_calibration(draft, file.parent, reporter), reporter, seeds)


def run_exploratory(
    study: Study, data: bytes, registration: Registration, selection: Selection, reporter: Reporter
) -> list[Path]:
    """Run a draft or registration over literal seeds, marked exploratory for
    ever; nothing is pushed. Returns the folders of the attempts.
    """
    check_can_run(registration)
    orders = []
    for run in selection.of(registration):
        base = study.runs / "exploratory"
        attempt = 1 + max(attempt_numbers(base / registration.id / run.path), default=0)
        folder = attempt_folder(base, registration.id, run.path, attempt)
        orders.append(AttemptOrder(data, run, attempt, folder, None, "exploratory", exploratory=True))
    for done, (_, result) in enumerate(run_all(execute, orders), 1):
        if isinstance(result, Exception):
            raise result
        reporter.step(f"exploring {registration.id} (simulated)", done, len(orders))
    return [order.folder for order in orders]
