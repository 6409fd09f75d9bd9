"""Sweeps of simulated runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from registry.executors import Executor


def _axis(what: str) -> typer.models.OptionInfo:
    """The option of an axis: values and ranges FROM:TO:STEP."""
    option: typer.models.OptionInfo = typer.Option(metavar="VALUES", help=what)
    return option


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rule file, committed or not.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The sweep's folder, new or to be gone on with.")],
    arm: Annotated[str | None, typer.Option(help="The arm to vary; default: the first that is judged.")] = None,
    rates: Annotated[str | None, _axis("Multiples of lambda_ref: 1.0:2.0:0.1, or 1.35,1.65.")] = None,
    bursts: Annotated[str | None, _axis("Sessions in the burst; 0 is no burst.")] = None,
    caps: Annotated[str | None, _axis("Session caps at the client; none is no gate.")] = None,
    pools: Annotated[str | None, _axis("KV pools, tokens: 150k,300k; at most the cell's.")] = None,
    orders: Annotated[str | None, _axis("fcfs, least-attained-service.")] = None,
    evictions: Annotated[str | None, _axis("lru, longest-wait.")] = None,
    seeds: Annotated[str | None, _axis("Literal seeds: 0:49 are fifty; default: the rule file's.")] = None,
    bin_s: Annotated[float, typer.Option(help="Width of the series' bins, seconds.")] = 60.0,
    shard_runs: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Runs a shard; default: a 64th of all, at most 500."),
    ] = None,
    records: Annotated[bool, typer.Option("--records", help="Keep the raw records of every run, too.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, max=1024, help="Worker processes; default: the cores.")] = None,
    executor: Annotated[Executor, typer.Option(help="Where to run.")] = Executor.LOCAL,
) -> None:
    """Simulate a grid of runs around a rule file.

    Exploratory: registers and pushes nothing. The same command again makes what is missing.

    Example: trapkit sweep rules/e2.yaml --out build/sweep --rates 1.0:2.0:0.1 --bursts 0:200:50 --seeds 0:9
    """
    from cli.render.progress import Console
    from cli.workflows.sweep import Request, make_sweep

    typed = {
        "rate": rates,
        "burst_sessions": bursts,
        "cap": caps,
        "pool_tokens": pools,
        "order": orders,
        "eviction": evictions,
        "seed": seeds,
    }
    axes = {name: text for name, text in typed.items() if text is not None}
    request = Request(axes, arm, bin_s, shard_runs, records)
    with Console() as console:
        outcome = make_sweep(file, out, request, console, workers, executor)
    if outcome.jobs:
        jobs = f"{len(outcome.jobs)} jobs, {outcome.jobs[0]} the first"
        print(f"{outcome.runs} runs (simulated, exploratory) in {outcome.shards} shards, handed to Slurm: {jobs}")
        return
    print(f"{outcome.runs} runs (simulated, exploratory) in {outcome.shards} shards, {outcome.made} made now: {out}")


def add_to(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(sweep)
