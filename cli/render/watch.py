"""An engine's state for a pager, a person and a program."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict

from cli.render.advice import advice_json, advice_text
from cli.workflows.watch import LONG_OVER_TRAPPED, Observation
from registry.plain_text import plain

_ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}


def watch_json(seen: Observation) -> str:
    """One line of JSON: the state's fields, the engine, the cap, the advice or null."""
    values = {
        "url": seen.url,
        "engine": seen.kind,
        "pool_tokens": seen.pool_tokens,
        "block_tokens": seen.block_tokens,
        **asdict(seen.state),
        "session_cap": seen.session_cap,
        "advice": None if seen.advice is None else json.loads(advice_json(seen.advice)),
        "advice_problem": seen.advice_problem,
    }
    return json.dumps(values)


def watch_text(seen: Observation, workload: str) -> str:
    """The state in one line, as monitors show it, then figures and what to do."""
    lines = [headline(seen), *(f"  {name:<28} {value}" for name, value in figures(seen))]
    if seen.advice is not None:
        lines += ["", advice_text(seen.advice, workload)]
    elif seen.state.name == "trapped":
        lines += ["", *what_to_do(seen)]
    if seen.advice_problem is not None:
        lines += ["", f"no advice for this model and GPU: {plain(seen.advice_problem, 300)}"]
    return "\n".join(lines)


def headline(seen: Observation) -> str:
    """`trapped: ...`, in one line."""
    return plain(f"{seen.state.name}: {seen.state.reason}", 400)


def figures(seen: Observation) -> list[tuple[str, str]]:
    """What was measured, by name; what the engine does not show is left out."""
    state = seen.state
    change = "" if state.waiting_change is None else f" ({state.waiting_change:+,} in {state.seconds:.1f} s)"
    block = "" if seen.block_tokens is None else f", blocks of {seen.block_tokens:,}"
    shown = [
        ("engine", f"{_ENGINES.get(seen.kind, 'unknown')} at {plain(seen.url, 200)}"),
        ("KV pool, tokens", None if seen.pool_tokens is None else f"{seen.pool_tokens:,}{block}"),
        ("hit fraction", None if state.hit_fraction is None else f"{state.hit_fraction:.3f}"),
        ("prompt tokens/s", _number(state.prompt_tokens_per_s)),
        ("of these computed", _number(state.uncached_prefill_tokens_per_s)),
        ("output tokens/s", _number(state.output_tokens_per_s)),
        ("requests running", _number(state.running)),
        ("requests waiting", None if state.waiting is None else f"{state.waiting:,}{change}"),
        ("preemptions", _number(state.preemptions)),
        ("mean prompt, tokens", _number(state.mean_prompt_tokens)),
    ]
    return [(name, value) for name, value in shown if value is not None]


def what_to_do(seen: Observation) -> list[str]:
    """The cure in general words, with a cap where it can be estimated."""
    if seen.session_cap is None or seen.pool_tokens is None or seen.state.mean_prompt_tokens is None:
        cap, basis = "N", "with N the KV pool over the prompt of a long session, in tokens"
    else:
        cap = str(seen.session_cap)
        basis = (
            f"estimated as the pool of {seen.pool_tokens:,} tokens over {LONG_OVER_TRAPPED:g} times the mean prompt "
            f"of {seen.state.mean_prompt_tokens:,.0f} tokens seen: a trap keeps long sessions"
        )
    return [
        "What to do: waiting does not help while more arrives than the engine completes without its cache.",
        "1. Cap the sessions admitted at a time, paused ones before new ones; nobody is turned away:",
        f"   trapkit gate serve --upstream {shlex.quote(seen.url.removesuffix('/metrics'))} --cap {cap}",
        f"   {basis}.",
        "2. Or cut arrivals to well below what the engine completes now, until nothing waits.",
        "3. Give --model and --gpu for figures: cap, rates, and how long a cut takes.",
    ]


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}"
