"""Commands of an operator: advise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def advise(
    model: Annotated[str | None, typer.Option(help="Model, or a part of its name: Qwen2.5-7B-Instruct.")] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU, or a part of its name: A100, H200.")] = None,
    pool: Annotated[str | None, typer.Option(metavar="TOKENS", help="KV pool of the engine: 300000 or 300k.")] = None,
    workload: Annotated[str, typer.Option(help="Workload: standard or mirror.")] = "standard",
    trace: Annotated[
        Path | None, typer.Option(metavar="TRACE", help="Real sessions instead of a workload: a file or folder.")
    ] = None,
    rule: Annotated[
        Path | None, typer.Option(metavar="RULE", help="Cell and workload of a rule file, instead of all the above.")
    ] = None,
    backlog: Annotated[
        int | None, typer.Option(min=0, help="Sessions present now: adds how long a cut in arrivals takes.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="PER_S", help="Arrivals, sessions/s; default: 1.5 all-miss capacities.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how a trap is prevented, seen and ended.

    Estimates of a model from data sheets or a cell's step costs, no measurement.

    Example: trapkit advise --model Qwen2.5-7B-Instruct --gpu A100 --pool 300k
    """
    from cli.render.advice import advice_json, advice_text, trace_words
    from cli.workflows.advise import advise_named, advise_rule, advise_trace
    from registry.errors import TrapError

    words, found = f"workload {workload}", None
    if rule is not None:
        if model or gpu or pool or trace:
            raise TrapError(
                "a rule file has its own engine and workload", value=str(rule), remedy="leave the others out"
            )
        advice, words = advise_rule(rule, backlog=backlog, rate_per_s=rate)
    elif model is None or gpu is None or pool is None:
        raise TrapError("advice for which engine?", remedy="--model, --gpu and --pool, or --rule")
    elif trace is None:
        advice = advise_named(model, gpu, pool, workload, backlog=backlog, rate_per_s=rate)
    else:
        advice, found = advise_trace(model, gpu, pool, trace, backlog=backlog, rate_per_s=rate)
        words = trace_words(found)
    print(advice_json(advice, found) if as_json else advice_text(advice, words))


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(advise)
