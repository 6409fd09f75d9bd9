"""The trap as pages with sliders, for who wants to see before reading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def playground(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write the pages to.")] = Path(
        "build/playground"
    ),
) -> None:
    """Write the playground: pages with sliders over model F and simulated runs.

    Some minutes: 4,500 runs are simulated. The pages load nothing and need no server.

    Example: trapkit playground --out build/playground
    """
    from cli.render.progress import Console
    from cli.workflows.playground import Grid, playground_data
    from cli.workflows.playground_files import write_pages

    with Console() as console:
        files = write_pages(playground_data(Grid(), console), out)
        console.say(f"wrote {len(files)} pages; open {files[0]}")


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(playground)
