"""Commands of who runs a witness server: witness create, serve, log, check."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The server's folder.")]
Name = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The repository.")]

group = typer.Typer(
    name="witness",
    help="Run a witness server: a git remote whose pushes are logged.\n\nExample: trapkit witness serve DIR",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@group.command()
def create(folder: Folder, name: Name) -> None:
    """Make an empty repository, and the server's folder and key.

    Example: trapkit witness create DIR lab/study
    """
    from cli.render.witness import created_text
    from cli.workflows.witness import create_repository

    repository, key = create_repository(folder, name)
    print(created_text(folder, repository, key))


@group.command()
def serve(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one, printed.")] = 8765,
    private: Annotated[bool, typer.Option("--private", help="Reading needs the token, too.")] = False,
    open_to_all: Annotated[
        bool, typer.Option("--open", help="Without a token, let anybody push who reaches the address.")
    ] = False,
    url: Annotated[
        str | None, typer.Option(help="How clients reach the server, if a proxy stands before it: https://...")
    ] = None,
    max_push_mib: Annotated[int, typer.Option(min=1, max=1_048_576, help="The largest push, MiB.")] = 2048,
) -> None:
    """Serve the folder until interrupted.

    TRAP_WITNESS_TOKEN, if set, is what a push needs as its password.

    Example: trapkit witness serve DIR
    """
    from cli.workflows.witness import ServeOptions
    from cli.workflows.witness import serve as serve_folder

    options = ServeOptions(host, port, private, open_to_all, url, max_push_mib * 1_048_576)
    serve_folder(
        folder,
        options,
        lambda line: print(line, flush=True),
        lambda line: print(line, file=sys.stderr, flush=True),
    )


@group.command()
def log(
    folder: Folder, name: Name, as_json: Annotated[bool, typer.Option("--json", help="Print the log.")] = False
) -> None:
    """Print a repository's push log, a row a line.

    Example: trapkit witness log DIR lab/study
    """
    from cli.render.witness import log_text
    from cli.workflows.witness import log_of
    from registry.witness.log import parse_log

    data, full_name = log_of(folder, name)
    print(data.decode() if as_json else log_text(parse_log(data, full_name)), end="")


@group.command()
def check(
    folder: Folder,
    name: Annotated[str | None, typer.Argument(metavar="OWNER/NAME", help="Only this repository.")] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An earlier copy of the log, or an earlier checkpoint.")
    ] = None,
) -> None:
    """Check chain, refs and objects, and an earlier copy.

    Exit 0: all is well. 1: something is not.

    Example: trapkit witness check DIR lab/study --against checkpoint.json
    """
    from cli.render.witness import check_text
    from cli.workflows.witness import check as check_folder

    found = check_folder(folder, name, against)
    print(check_text(found))
    raise typer.Exit(1 if any(problems for _, problems in found) else 0)


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(group)
