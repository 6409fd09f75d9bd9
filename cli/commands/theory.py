"""The theory at the command line: one load, a sweep, or the printed numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def theory(
    cell: Annotated[
        str, typer.Option(metavar="CELL", help="A cell of the paper, or of the study here.")
    ] = "sglang-300k",
    load: Annotated[
        list[str] | None,
        typer.Option(metavar="LOAD", help="A multiple of lambda_ref (1.35 by default), or FROM:TO:COUNT; repeatable."),
    ] = None,
    workload: Annotated[str, typer.Option(metavar="NAME", help="standard or mirror.")] = "standard",
    conformance: Annotated[
        bool, typer.Option("--conformance", help="Every number that the paper prints about model F, beside ours.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the sweep (.svg or .png).")] = None,
) -> None:
    """Compute where a trapped engine goes, by model F.

    Exit 1: with --conformance, a number disagrees.

    Example: trapkit theory --cell sglang-300k --load 1.35 --load 1.65
    """
    from cli.render.theory import conformance_text, draw_sweep, sweep_text
    from cli.workflows.theory import conform, parse_loads, sweep
    from verifier.report import dumps, to_json

    if conformance:
        rows = conform()
        shown = [to_json(row) | {"agrees": row.agrees} for row in rows]
        print(dumps({"schema": "trap-conformance-1", "rows": shown}) if as_json else conformance_text(rows))
        raise typer.Exit(0 if all(row.agrees for row in rows) else 1)
    result = sweep(cell, workload, parse_loads(load or ["1.35"]), Path())
    if plot:
        draw_sweep(result, plot)
    print(dumps(result.as_json()) if as_json else sweep_text(result))


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(theory)
