"""The session cap in front of a live engine: gate serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

group = typer.Typer(
    name="gate",
    help="Cap the sessions of a live engine.\n\nExample: trapkit gate serve --upstream http://127.0.0.1:8000 --cap 20",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_MIB = 1_048_576
_RELEASE_S = 300.0


@group.callback()
def _gate() -> None:
    """Keep `serve` a word of its own while it is the group's only command."""


@group.command()
def serve(
    upstream: Annotated[str, typer.Option(metavar="URL", help="The engine: http://127.0.0.1:8000.")],
    cap: Annotated[int, typer.Option(min=1, help="Sessions that may hold a slot.")],
    engage_when_trapped: Annotated[
        bool, typer.Option("--engage-when-trapped", help="Stay open until the engine's metrics show a trap.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one, printed.")] = 8100,
    release_after_s: Annotated[
        float | None,
        typer.Option(min=0, help="Release once nobody has waited for so long; 300 with --engage-when-trapped."),
    ] = None,
    poll_s: Annotated[float, typer.Option(min=10, help="How often the engine's metrics are read.")] = 10,
    expected_hit_fraction: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of prompt tokens, what the cache should give.")
    ] = None,
    idle_end_s: Annotated[float, typer.Option(min=0, help="A session is over so long after its last reply.")] = 60,
    keep_place_s: Annotated[float, typer.Option(min=0, help="For how long a client that left keeps its place.")] = 30,
    max_waiting: Annotated[int, typer.Option(min=1, help="Sessions that may wait; others get 429.")] = 1000,
    max_wait_s: Annotated[float, typer.Option(min=1, help="A request that waited so long gets 429.")] = 3600,
    drain_s: Annotated[float, typer.Option(min=0, help="At the end, how long running requests may take.")] = 60,
    upstream_timeout_s: Annotated[float, typer.Option(min=1, help="The engine's longest silence.")] = 3600,
    max_body_mib: Annotated[int, typer.Option(min=1, max=1024, help="The largest request held back, MiB.")] = 64,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the gate's events, JSON lines.")] = None,
) -> None:
    """Serve an OpenAI-compatible proxy that lets CAP sessions in, until interrupted.

    Example: trapkit gate serve --upstream http://127.0.0.1:8000 --cap 20
    """
    from cli.workflows.gate import serve_gate
    from runners.proxy.settings import ProxySettings, checked_upstream

    settings = ProxySettings(
        upstream=checked_upstream(upstream),
        cap=cap,
        host=host,
        port=port,
        engage_when_trapped=engage_when_trapped,
        release_after_s=_RELEASE_S if release_after_s is None and engage_when_trapped else release_after_s,
        poll_s=poll_s,
        idle_end_s=idle_end_s,
        keep_place_s=keep_place_s,
        max_waiting=max_waiting,
        max_wait_s=max_wait_s,
        drain_s=drain_s,
        upstream_timeout_s=upstream_timeout_s,
        max_body_bytes=max_body_mib * _MIB,
        log=log,
    )
    serve_gate(settings, expected_hit_fraction, lambda line: print(line, flush=True))


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(group)
