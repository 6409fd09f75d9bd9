"""Commands about the auditor's trust policy: policy show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Your trust policy; default: $TRAP_POLICY, else the user's own."),
]

group = typer.Typer(
    name="policy",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show whom a verification believes.\n\nExample: trapkit policy show",
)


@group.command()
def show(
    policy: PolicyFile = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Show the trust policy: built in, and your own file's.

    Example: trapkit policy show
    """
    from cli.render.policy import policy_json, policy_text
    from registry.witness.policy_file import load_policy

    found = load_policy(policy)
    print(policy_json(found) if as_json else policy_text(found))


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(group)
