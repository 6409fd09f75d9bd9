"""Tables and figures: of a study, and of a sweep."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.commands.policy import PolicyFile
from registry.errors import StudyError


class Statistic(StrEnum):
    """What a table says of the values in a cell."""

    MEAN = "mean"
    MEDIAN = "median"
    SHARE = "share"
    MIN = "min"
    MAX = "max"
    COUNT = "count"


class Format(StrEnum):
    """How a table is printed."""

    markdown = "markdown"
    csv = "csv"
    latex = "latex"


def tables(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder of a sweep; without it, the study's tables.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="AXIS", help="Of a sweep: the axis down, burst_sessions, say.")
    ] = None,
    columns: Annotated[str | None, typer.Option(metavar="AXIS", help="Of a sweep: the axis across, rate, say.")] = None,
    value: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a sweep: WINDOW.READING, or a verdict: ARM.NAME.")
    ] = None,
    statistic: Annotated[
        Statistic | None,
        typer.Option(help="Of a sweep; default: the share of a verdict, the median of a reading."),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.markdown,
    where: Annotated[
        list[str] | None, typer.Option(metavar="AXIS=VALUE", help="Of a sweep: only runs with this value; repeatable.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of a sweep: also draw it (.svg or .png).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of a study: write tables and figures there, in every format.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of a study: where run files are; default: its runs/.")
    ] = None,
    policy: PolicyFile = None,
) -> None:
    """Print or write a study's tables and figures; or print a table of a sweep.

    Without DIR: verifies the study, and makes its tables from the runs that
    hold; exits as verify does. With DIR: one statistic of a sweep over two
    axes. An unfinished sweep has a table, too: it says how many runs there are.

    Example: trapkit tables --out build/tables
    """
    if folder is None:
        _refuse("a study's tables have no such option", "name the folder of a sweep, too",
                rows=rows, columns=columns, value=value, statistic=statistic, where=where, figure=figure)  # fmt: skip
        _study_tables(output, out, runs, policy)
        return
    _refuse("a sweep's table has no such option", "leave DIR out for a study's", out=out, runs=runs, policy=policy)
    if rows is None or columns is None or value is None:
        raise StudyError(
            "a table of a sweep needs its axes and a value",
            where=str(folder),
            remedy="--rows AXIS --columns AXIS --value NAME; inside a study, without DIR: the study's tables",
        )
    _sweep_table(folder, (rows, columns, value), statistic, output, where or [], figure)


def _refuse(what: str, remedy: str, **options: object) -> None:
    """StudyError for the first option that is given."""
    for name, given in options.items():
        if given:
            raise StudyError(what, where=f"--{name}", value=str(given), remedy=remedy)


def _study_tables(output: Format, out: Path | None, runs: Path | None, policy: Path | None) -> None:
    from cli.render.study_index import printed
    from cli.workflows.study_tables import study_tables
    from cli.workflows.write_tables import make_folder, verified, write_tables
    from registry.study import find_root
    from registry.witness.policy_file import load_policy

    root = find_root(Path())
    trusted = load_policy(policy, root) if policy else None
    if out:
        make_folder(out)
    report = verified(Path(), runs, trusted, with_series=out is not None)
    if out:
        files = write_tables(report, out)
        print(f"wrote {len(files)} files: {files[-1]} says what each is")
    else:
        print(printed(study_tables(report), output.value))
    raise typer.Exit(report.exit_code)


def _sweep_table(
    folder: Path,
    names: tuple[str, str, str],
    statistic: Statistic | None,
    output: Format,
    where: list[str],
    figure: Path | None,
) -> None:
    from cli.render.pivot import pivot_csv, pivot_latex, pivot_markdown
    from cli.workflows.sweep_tables import pivot

    shown = {Format.markdown: pivot_markdown, Format.csv: pivot_csv, Format.latex: pivot_latex}[output]
    table = pivot(folder, *names, statistic.value if statistic else None, where)
    if figure:
        from cli.render.picture_phase import draw_pivot

        draw_pivot(table, figure)
    print(shown(table))


def add_to(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(tables)
