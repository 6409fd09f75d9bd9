"""The command doctor: what works on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def doctor(
    online: Annotated[bool, typer.Option("--online", help="Also ask GitHub, drand, an authority, an archive.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what works on this machine, and what to install for the rest.

    Exit 0 where everything that the core needs is there, 1 where not; what is
    optional never fails.

    Example: trapkit doctor --online
    """
    from cli.render.doctor import doctor_json, doctor_text
    from cli.workflows.doctor import examine, exit_code
    from cli.workflows.doctor_core import CORE_CHECKS
    from cli.workflows.doctor_online import ONLINE_CHECKS
    from cli.workflows.doctor_optional import OPTIONAL_CHECKS, engine_checks
    from cli.workflows.doctor_probes import this_machine

    probes = this_machine(Path.cwd())
    checks = (*CORE_CHECKS, *OPTIONAL_CHECKS, *engine_checks(probes), *ONLINE_CHECKS)
    findings = examine(checks, probes, online=online)
    print(doctor_json(findings) if as_json else doctor_text(findings))
    raise typer.Exit(exit_code(findings))


def add_to(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(doctor)
