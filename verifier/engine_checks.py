"""The checks of a real engine's run against its registration.

What run.json says of the engine is its author's word, and so are the records:
these checks find contradictions, and prove no machine.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from registry.registration import Registration
from verifier.check import Check, proven, refuted, unprovable
from verifier.readings import RunFrames
from verifier.run_checks import RunContext
from verifier.turn_sizes import turn_sizes


def check_kind(engine: dict[str, Any], registration: Registration) -> Check:
    """The run was made on the kind of engine that was registered."""
    name, simulated = "engine_kind", engine.get("simulated") is True
    kind, wanted = ("a simulator", "a real engine") if simulated else ("a real engine", "a simulator")
    if simulated != (registration.engine is None):
        return refuted(name, f"run.json says {kind}, the registration runs on {wanted}")
    return proven(name, f"made on {kind}, as registered")


def check_engine(engine: dict[str, Any], context: RunContext) -> Check:
    """Version, pool, block and caching as the engine itself told them."""
    name, cell = "engine_as_registered", context.cell
    version, told = engine.get("version"), _sample(engine, "before")
    says = {
        "version": version.partition("+")[0] if isinstance(version, str) else None,
        **{key: told.get(key) for key in ("pool_tokens", "block_tokens", "prefix_caching")},
    }
    wanted = {
        "version": cell.engine_version,
        "pool_tokens": cell.pool_tokens,
        "block_tokens": cell.cache_block_tokens,
        "prefix_caching": context.arm.caching,
    }
    if engine.get("name") != cell.engine:
        return refuted(name, f"run.json says {engine.get('name')!r}, the cell's engine is {cell.engine}")
    for key, value in says.items():
        if value is not None and value != wanted[key]:
            return refuted(name, f"the engine said {key} {value!r}, registered is {wanted[key]!r}")
    silent = sorted(key for key, value in says.items() if value is None)
    if silent:
        return unprovable(name, f"the engine did not say its {', '.join(silent)}", needed=False)
    return proven(name, f"{cell.engine} {version}, {cell.pool_tokens} tokens in blocks of {cell.cache_block_tokens}")


def check_counters(engine: dict[str, Any], frames: RunFrames, context: RunContext) -> Check:
    """The engine's own counters over the run agree with the client's turns.

    What was answered is the least that they may show; beside it, what was
    sent and not answered may have been computed, wholly or in part.
    """
    name, turns, sizes = "engine_counters", frames.turns, turn_sizes(frames, context.plan, context.cell)
    if sizes is None:
        return refuted(name, "a turn of no planned session")
    before, after = _sample(engine, "before"), _sample(engine, "after")
    # A turn that the gate let go may have been sent at the very horizon.
    ok, sent = turns[turns.outcome == "ok"], turns[turns.admitted_s.notna()]
    open_turns = sent[sent.outcome != "ok"]
    # An engine counts the cached tokens of a readmission anew; the record holds no more than could be reused.
    outputs = pd.Series(sizes.output_tokens, turns.index)
    retracted = int((sent.retractions * (sent.prompt_tokens + outputs[sent.index])).sum())
    reusable = int(pd.Series(sizes.most_cached, turns.index)[open_turns.index].sum())
    spans = {
        "prompt_tokens_total": (ok.prompt_tokens.sum(), open_turns.prompt_tokens.sum()),
        "cached_tokens_total": (ok.cached_tokens.sum(), reusable + retracted),
        "output_tokens_total": (ok.output_tokens.sum(), outputs[open_turns.index].sum()),
    }
    shown = [key for key in spans if key in before and key in after]
    for key in shown:
        counted, (least, more) = after[key] - before[key], map(int, spans[key])
        if not least <= counted <= least + more:
            return refuted(
                name,
                f"the engine counted {counted} {key.removesuffix('_total')}, the turns say {least} to {least + more}",
            )
    if len(shown) < len(spans):
        return unprovable(name, "the engine does not show all of its counters", needed=False)
    return proven(name, f"the engine's counters agree with {len(ok)} turns")


NOT_EXECUTED_AGAIN = unprovable(
    "executed_again",
    "a real engine's run cannot be executed again: consistent records, not proof that it ran",
    needed=False,
)
"""What stands in the place of a second execution."""


def machine_words(engine: dict[str, Any]) -> str:
    """The machine in a line, as run.json has it: GPUs, else the processor."""
    machine = engine.get("machine")
    if not isinstance(machine, dict):
        return "a machine that is not named"
    gpus = machine.get("gpus")
    named = [str(gpu)[:100] for gpu in gpus[:8]] if isinstance(gpus, list) else []
    processor = f"{str(machine.get('processor'))[:100]}, {str(machine.get('cores'))[:10]} cores"
    return "; ".join(named) or processor


def job_words(job: object) -> str | None:
    """The scheduler's job in a line, as run.json has it; None where it has none."""
    if not isinstance(job, dict):
        return None
    said = {key: str(job.get(key))[:100] for key in ("scheduler", "job", "node", "submitted_at", "started_at")}
    times = f"submitted {said['submitted_at']}, started {said['started_at']}"
    return f"{said['scheduler']} job {said['job']} on {said['node']}, {times}"


def _sample(engine: dict[str, Any], key: str) -> dict[str, Any]:
    """The whole numbers and flags of a sample in run.json, whatever it holds."""
    value = engine.get(key)
    found = value.items() if isinstance(value, dict) else ()
    return {k: v for k, v in found if type(v) is bool or (type(v) is int and 0 <= v < 2**53)}
