"""Writes a study's tables and figures into a folder."""

from __future__ import annotations

from pathlib import Path

from cli.render.study_index import FIGURES, FORMATS, TABLES, study_index
from cli.render.study_tables import text_tables
from cli.render.text_table import table_csv, table_latex, table_markdown
from cli.workflows.study_figures import drawn_figures
from cli.workflows.study_tables import study_tables
from cli.workflows.verify import verify
from registry.errors import StudyError
from registry.witness.policy import Policy
from registry.witness.policy_file import built_in
from verifier.report import StudyReport

_WRITERS = dict(zip(FORMATS, (table_csv, table_markdown, table_latex), strict=True))


def verified(
    start: Path, runs: Path | None = None, policy: Policy | None = None, *, with_series: bool = False
) -> StudyReport:
    """The study around a folder, verified as for its ledger: by the study alone and
    by what is built in, unless a policy is given, so that every clone gives the same.
    """
    return verify(start, runs=runs, policy=policy or built_in(), live=False, with_series=with_series)[0]


def write_tables(report: StudyReport, folder: Path) -> list[Path]:
    """Write tables/, figures/ and README.md of a verified study (with its runs'
    series) into `folder`; the files, in that order.

    StudyError where the folder cannot be written.
    """
    tables, drawn = study_tables(report), drawn_figures(report)
    shown = text_tables(tables)
    files = {f"{TABLES}/{table.name}.{form}": write(table) for table in shown for form, write in _WRITERS.items()}
    for figure in drawn.figures:
        files |= {f"{FIGURES}/{figure.name}.svg": figure.svg, f"{FIGURES}/{figure.name}.csv": figure.csv}
    files["README.md"] = study_index(tables, shown, drawn.figures, drawn.not_drawn)
    return [_write(folder / name, text) for name, text in files.items()]


def make_folder(folder: Path) -> None:
    """Make a folder where there is none; StudyError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _write(path: Path, text: str) -> Path:
    make_folder(path.parent)
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def _unwritable(path: Path, error: OSError) -> StudyError:
    what = f"it cannot be written: {error.strerror}"
    return StudyError(what, where=str(path), remedy="--out DIR: a folder that you may write to")
