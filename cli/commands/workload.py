"""Commands about workloads from real sessions: workload describe, workload table."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

group = typer.Typer(
    name="workload",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Workloads from traces of real agent sessions.\n\nExample: trapkit workload describe sessions.jsonl",
)


class Format(StrEnum):
    """How a trace is written."""

    weka = "weka"
    mooncake = "mooncake"
    tracelab = "tracelab"


@group.command()
def describe(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A file, or a folder of session files.")],
    kind: Annotated[Format | None, typer.Option("--format", help="How it is written; default: by its name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count what a trace holds.

    Sessions, turns, tokens, and how much an infinite cache would reuse. What cannot
    be read is told by file and line. Exit 1 where anything could not, 2 where nothing could.

    Example: trapkit workload describe sessions.jsonl --json
    """
    from cli.render.trace import description_json, description_text
    from registry.traces.description import describe as describe_trace
    from registry.traces.formats import format_of, read_trace

    name = kind.value if kind else format_of(trace)
    found = describe_trace(read_trace(trace, name))
    print(description_json(found, name) if as_json else description_text(found, name))
    if not found.turns:
        raise typer.Exit(2)
    raise typer.Exit(1 if found.malformed else 0)


@group.command()
def table(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A file, or a folder of session files.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; it must not be there yet.")],
    kind: Annotated[Format | None, typer.Option("--format", help="How it is written; default: by its name.")] = None,
) -> None:
    """Write a trace as a session table.

    One Parquet file with a row a turn, in the trace's order. What cannot be read is told
    by file and line. Exit 1 where anything could not, 2 where nothing could: no file then.

    Example: trapkit workload table sessions.jsonl sessions.parquet
    """
    from cli.render.trace import table_text
    from cli.workflows.trace_table import write_table
    from registry.traces.formats import format_of, read_trace

    written = write_table(read_trace(trace, kind.value if kind else format_of(trace)), out)
    print(table_text(written, str(out)))
    if not written.turns:
        raise typer.Exit(2)
    raise typer.Exit(1 if written.malformed else 0)


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(group)
