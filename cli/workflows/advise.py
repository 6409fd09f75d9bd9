"""From what an operator types to `modelf.advice`, every name checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from cli.workflows.explore import load_rule_file
from modelf.advice import Advice, AdvisedEngine, advise
from modelf.first_principles import largest_pool_tokens
from modelf.hardware import GPUS, MODELS
from modelf.workload import WORKLOADS, Workload
from registry.errors import TrapError
from registry.traces.empirical import EmpiricalWorkload, empirical_workload
from registry.traces.formats import format_of, read_trace

Named = TypeVar("Named")

_TOKENS = re.compile(r"(\d[\d_,]*)(k?)")


def advise_named(
    model: str, gpu: str, pool: str, workload: str, *, backlog: int | None = None, rate_per_s: float | None = None
) -> Advice:
    """Advice by names; TrapError for one that is unknown or not unique, and
    for a pool that cannot hold one turn or does not fit in the GPU.
    """
    session = named("workload", workload, WORKLOADS)
    return _advise(model, gpu, tokens_of(pool), session, backlog, rate_per_s)


def advise_trace(
    model: str,
    gpu: str,
    pool: str,
    trace: Path,
    kind: str | None = None,
    *,
    backlog: int | None = None,
    rate_per_s: float | None = None,
) -> tuple[Advice, EmpiricalWorkload]:
    """Advice for the sessions of a trace that fit the pool; the same errors,
    and RecordError for a trace that is none or has no such session.
    """
    tokens, name = tokens_of(pool), kind or format_of(trace)
    found = empirical_workload(lambda: read_trace(trace, name), tokens)
    return _advise(model, gpu, tokens, found.workload, backlog, rate_per_s), found


def _advise(
    model: str, gpu: str, pool_tokens: int, workload: Workload, backlog: int | None, rate_per_s: float | None
) -> Advice:
    shape, accelerator = named("model", model, MODELS), named("GPU", gpu, GPUS)
    smallest = workload.longest_turn_tokens()
    largest = largest_pool_tokens(shape, accelerator)
    if not smallest <= pool_tokens <= largest:
        raise TrapError(
            "no engine has this KV pool",
            value=f"{pool_tokens:,} tokens",
            remedy=f"from {smallest:,} tokens (the longest turn) to {largest:,} (beside {shape.name} on {gpu})",
        )
    _check_rate(rate_per_s)
    engine = AdvisedEngine.of_data_sheets(shape, accelerator, pool_tokens)
    return advise(engine, workload, backlog=backlog, rate_per_s=rate_per_s)


def _check_rate(rate_per_s: float | None) -> None:
    if rate_per_s is not None and not 0 < rate_per_s < float("inf"):
        raise TrapError("an arrival rate must be positive", value=rate_per_s, remedy="sessions per second, 0.1 say")


def advise_rule(file: Path, *, backlog: int | None = None, rate_per_s: float | None = None) -> tuple[Advice, str]:
    """Advice for a rule file's workload on its cell, with the cell's step costs;
    and the workload in words. TrapError where the cell has none.
    """
    draft = load_rule_file(file)
    cell = draft.cell
    if cell.step_costs is None:
        raise TrapError(f"the step costs of cell {cell.name} are unknown", where=str(file), value=cell.name)
    _check_rate(rate_per_s)
    engine = AdvisedEngine(
        cell.model, cell.gpu, cell.pool_tokens, cell.step_costs, f"the step costs of cell {cell.name}"
    )
    words = f"the workload of {draft.id}"
    return advise(engine, draft.design.workload, backlog=backlog, rate_per_s=rate_per_s), words


def named(kind: str, name: str, known: Mapping[str, Named]) -> Named:
    """The entry called `name`, or the only one whose name contains it; upper
    and lower case alike.
    """
    wanted = name.strip().lower()
    exact = [key for key in known if key.lower() == wanted]
    found = exact or [key for key in known if wanted and wanted in key.lower()]
    if len(found) != 1:
        what = f"{len(found)} {kind}s have this in their names" if found else f"there is no {kind} of this name"
        raise TrapError(what, value=name, remedy=f"known: {', '.join(known)}")
    return known[found[0]]


def tokens_of(text: str) -> int:
    """`300000`, `300_000`, `300,000` or `300k`."""
    match = _TOKENS.fullmatch(text.strip().lower())
    if match is None:
        raise TrapError("not a number of tokens", value=text, remedy="300000 or 300k, say")
    return int(re.sub("[_,]", "", match[1])) * (1000 if match[2] else 1)
