"""Commands to begin with: init, demo, shell-init."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Shell(StrEnum):
    """Shells that shell-init speaks."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The study's folder, empty or absent.")] = Path(),
    local_remote: Annotated[
        bool, typer.Option("--local-remote", help="Also make a bare remote beside it, whose hook is the local witness.")
    ] = False,
    github: Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="Push to this GitHub repository.")] = None,
    github_api: Annotated[
        str | None, typer.Option(metavar="URL", help="API of a GitHub Enterprise server, with --github.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Push to this witness server, with --repository.")
    ] = None,
    repository: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="The repository on the witness server.")
    ] = None,
    timestamp_authority: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="An RFC 3161 authority to stamp registrations; repeatable."),
    ] = None,
    commit_runs: Annotated[
        bool, typer.Option("--commit-runs", help="Keep run files in git too, not only their digests.")
    ] = False,
) -> None:
    """Make a study: a git repository, rule files, a key.

    Example: trapkit init my-study --local-remote
    """
    from cli.workflows.init import init_study
    from cli.workflows.remotes import choose_remote

    choice = choose_remote(
        local=local_remote,
        github=github,
        github_api=github_api,
        server=server,
        repository=repository,
        authorities=tuple(timestamp_authority or ()),
    )
    made = init_study(folder, choice, commit_runs=commit_runs)
    print(f"made the study {made.root}")
    for note in made.notes:
        print(f"  {note}")
    if made.remote:
        print(f"  remote with the local witness: {made.remote}")
        print(f"next: cd {folder} && trapkit register rules/e2.yaml")


def demo(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the demo's study goes.")] = Path("demo-study"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace an earlier demo in DIR.")] = False,
    engine: Annotated[
        bool, typer.Option("--engine", help="On a real engine, vLLM on this machine's CPU: about 20 minutes.")
    ] = False,
) -> None:
    """Run the main job once, end to end, simulated or on a real engine.

    Example: trapkit demo build/demo-study
    """
    from cli.render.progress import Console
    from cli.workflows.demo import run_demo
    from cli.workflows.demo_engine import run_engine_demo

    with Console() as console:
        outcome = (run_engine_demo if engine else run_demo)(folder, console, fresh=fresh)
    print(outcome.text)
    raise typer.Exit(outcome.exit_code)


def shell_init(
    shell: Annotated[Shell, typer.Argument(help="Your shell.")],
) -> None:
    """Print a function that makes `trap verify` work.

    Example: eval "$(trapkit shell-init bash)"
    """
    from cli.shell_init import function_for

    print(function_for(shell.value), end="")


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(init)
    app.command()(demo)
    app.command("shell-init")(shell_init)
