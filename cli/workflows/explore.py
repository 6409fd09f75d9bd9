"""Rule files tried out: rehearsals and exploratory runs, nothing pushed."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from cli.workflows.rehearse import Rehearsal, provisional, rehearse, rehearsed_calibration
from cli.workflows.reporter import Reporter
from cli.workflows.run import Selection, run_exploratory
from registry.draft import Draft, load_draft
from registry.errors import StudyError
from registry.registration import Calibration, read_registration
from registry.study import Study


def load_rule_file(file: Path) -> Draft:
    """A rule file from disk, committed or not."""
    if not file.is_file():
        raise StudyError("no such rule file", where=str(file), remedy="name a file below rules/")
    return load_draft(file.read_bytes(), str(file))


def simulated_calibration(draft: Draft, folder: Path, reporter: Reporter) -> Calibration | None:
    """The calibration that a draft names, simulated over literal seeds; its
    rule file lies in `folder`, or ships with the product.
    """
    if draft.calibration is None:
        return None
    name = f"{draft.calibration}.yaml"
    path = folder / name
    source = path if path.is_file() else resources.files("rules") / name
    if not source.is_file():
        raise StudyError(f"there is no rule file for the calibration {draft.calibration}", where=str(path),
                         remedy=f"write rules/{name}")  # fmt: skip
    return rehearsed_calibration(source.read_bytes(), str(source), draft, reporter)


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
