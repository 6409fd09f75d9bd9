"""The command watch: is a live engine trapped?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cli.workflows.watch import Observation


def watch(
    url: Annotated[str, typer.Argument(metavar="URL", help="The engine's address, http://HOST:PORT.")],
    interval_s: Annotated[float, typer.Option(help="Seconds between two samples, 10 or more.")] = 10.0,
    expected_hit_fraction: Annotated[
        float | None,
        typer.Option(help="Fraction of prompt tokens that the cache gives this traffic when all is well; 0 to 1."),
    ] = None,
    live: Annotated[bool, typer.Option(help="Go on until Ctrl-C; exit by the last state.")] = False,
    model: Annotated[str | None, typer.Option(help="Model, for advice: Qwen2.5-7B-Instruct.")] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU, for advice: A100, H200.")] = None,
    pool: Annotated[str | None, typer.Option(metavar="TOKENS", help="KV pool; default: what the engine shows.")] = None,
    workload: Annotated[str, typer.Option(help="Workload, for advice: standard or mirror.")] = "standard",
    rate: Annotated[float | None, typer.Option(metavar="PER_S", help="Arrivals, sessions/s, for advice.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; with --live, one line an interval.")] = False,
) -> None:
    """Say whether a live engine is trapped: exit 0 good, 1 trapped, 3 unknown.

    Two samples of its metrics, vLLM's or SGLang's; nothing is sent to its model.

    Example: trapkit watch http://127.0.0.1:8000 --expected-hit-fraction 0.8
    """
    from cli.render.watch import watch_json, watch_text
    from cli.workflows.watch import EXIT_CODES, Question, observations

    question = Question(model, gpu, pool, workload, rate)
    seen = observations(url, interval_s, question, expected_hit_fraction)
    if live:
        last = _live(seen, as_json, workload)
    else:
        last = next(seen)
        print(watch_json(last) if as_json else watch_text(last, workload))
    raise typer.Exit(EXIT_CODES[last.state.name if last else "unknown"])


def _live(seen: Iterator[Observation], as_json: bool, workload: str) -> Observation | None:
    """Show observations until Ctrl-C; the last one."""
    from cli.render.watch import watch_json, watch_text

    last: Observation | None = None
    try:
        if as_json:
            for last in seen:
                print(watch_json(last), flush=True)
        else:
            from rich.live import Live
            from rich.text import Text

            with Live(Text("two samples are needed: wait"), auto_refresh=False, vertical_overflow="visible") as view:
                for last in seen:
                    view.update(Text(watch_text(last, workload)), refresh=True)
    except KeyboardInterrupt:
        pass
    return last


def add_to(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(watch)
