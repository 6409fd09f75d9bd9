"""The paper's tests beside ours, on the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    tests: Annotated[
        list[str] | None, typer.Argument(metavar="[TEST]...", help="Tests of the paper, e2 for example; default: all.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=10_000, help="How many literal seeds.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    figures: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also draw figures there.")] = None,
) -> None:
    """Simulate the paper's tests, ours beside the printed.

    Registers nothing. Disagreement is a result, not an error: the exit code is 0.

    Example: trapkit reproduce e2 basin-1 --seeds 20
    """
    from cli.render.progress import Console
    from cli.render.reproduction import reproduction_json, reproduction_text
    from cli.workflows.reproduce import reproduce as reproduce_tests

    with Console() as console:
        result = reproduce_tests(tests or [], seeds, console)
        if figures:
            from cli.render.figures import draw_figures

            console.say(f"drew {len(draw_figures(result, figures, console))} files in {figures}")
    print(reproduction_json(result) if as_json else reproduction_text(result))


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(reproduce)
