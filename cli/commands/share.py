"""Commands that share a study: crate, workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def crate(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The registration's id.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The crate's folder, new.")],
    runs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where run files are; default: the study's runs/.")
    ] = None,
    license_text: Annotated[
        str | None,
        typer.Option("--license", metavar="TEXT", help="The license of what is exported, a URL or a sentence."),
    ] = None,
) -> None:
    """Export a registration and its runs as a research object.

    A folder after the Workflow Run RO-Crate profile, for archives such as
    Zenodo and WorkflowHub. Everything in it is verified first.

    Example: trapkit crate e2 --out build/e2-crate
    """
    from cli.workflows.crate import NO_LICENSE, export_crate

    found = export_crate(Path(), identity, out, runs=runs, license_text=license_text or NO_LICENSE)
    print(f"wrote {found.metadata}: {found.runs} runs")
    for path in found.refuted:
        print(f"  left out, since it is refuted: {path}")
    print(found.report.last_line)
    raise typer.Exit(found.report.exit_code)


def workflow(
    install: Annotated[
        str | None, typer.Option(metavar="REQUIREMENT", help="What pip installs; default: this version of trapkit.")
    ] = None,
) -> None:
    """Write a workflow for GitHub in which a study verifies itself.

    Example: trapkit workflow
    """
    from cli.workflows.github_workflow import FILE, write_workflow
    from registry.study import find_root

    _, new = write_workflow(find_root(Path()), install)
    print(f"wrote {FILE}" if new else f"{FILE} is there already, the same")
    print("next: git add .github && git commit -m 'Verify in public' && git push")


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    for command in (crate, workflow):
        app.command()(command)
