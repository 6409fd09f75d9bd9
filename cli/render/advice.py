"""Advice as numbered sentences that an on-call engineer can act on."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import asdict

from modelf.advice import FIRST_PRINCIPLES, Advice
from registry.traces.empirical import EmpiricalWorkload

_WIDTH = 100


def advice_json(advice: Advice, trace: EmpiricalWorkload | None = None) -> str:
    """Every figure, with what kind of figure it is; null where undefined. `trace`
    is what the workload was made of, its tables apart.
    """
    values = {"status": f"estimated from {advice.costs_from}, not measured", **asdict(advice)}
    if trace:
        values["trace"] = {name: value for name, value in asdict(trace).items() if name != "workload"}
    if not math.isfinite(advice.half_hit):
        values["half_hit"] = None
    return json.dumps(values, indent=1)


def trace_words(found: EmpiricalWorkload) -> str:
    """What a workload from a trace was made of, and what is lost."""
    left_out = f"; {found.excluded:,} sessions are left out, larger than the pool" if found.excluded else ""
    left_out += f"; {found.malformed:,} lines could not be read" if found.malformed else ""
    rough = f"{found.waits - found.measured_waits:,} of {found.waits:,} waits hold the answers' own time"
    return (
        f"{found.turns:,} turns of {found.sessions:,} real sessions{left_out}. Means by turn, {rough}; "
        "blocks that sessions share with each other are not counted"
    )


def advice_text(advice: Advice, workload: str) -> str:
    """What to look for and what to do, in order; `workload` is it in words."""
    one = "one " if advice.costs_from == FIRST_PRINCIPLES else ""
    head = _wrapped(f"{advice.model} on {one}{advice.gpu}, KV pool {advice.pool_tokens:,} tokens, {workload}", "")
    sheet = " (model shape, data sheet)" if advice.costs_from == FIRST_PRINCIPLES else ""
    status = (
        f"ESTIMATED by a model from {advice.costs_from}{sheet}, not measured on any engine. "
        "Trust the order of things more than the last digit."
    )
    steps = [_recognise(advice), _misleads(advice), _rescue(advice), _cut(advice), _prevent(advice)]
    numbered = [_wrapped(f"{number}. {step}") for number, step in enumerate(steps, 1)]
    return "\n".join([head, _wrapped(status, ""), "", *numbered])


def _wrapped(text: str, indent: str = "   ") -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _rate(per_s: float) -> str:
    return f"{per_s:.3g} sessions/s"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _recognise(advice: Advice) -> str:
    return (
        "Recognise it. The engine is trapped if follow-up turns find nothing in the prefix cache (hit fraction near 0) "
        "while sessions pile up. In that state it can complete "
        f"{_rate(advice.lambda_miss_per_s)}, its all-miss capacity; while more arrives, waiting does not help."
    )


def _misleads(advice: Advice) -> str:
    supposed = "" if advice.rate_given else " (supposed; give yours with --rate)"
    at = f"At {_rate(advice.rate_per_s)} arriving{supposed}"
    if advice.trapped is None:
        return f"Wait, if you can. {at}, less than the all-miss capacity, a trapped queue empties by itself (see 4)."
    trapped = advice.trapped
    if trapped.overstatement <= 1:
        return (
            f"Throughput. {at}, a trapped engine completes {_rate(trapped.completions_per_s)}, less than its all-miss "
            f"capacity; its backlog grows by {60 * trapped.backlog_per_s:.1f} sessions a minute."
        )
    percent = 100 * (trapped.overstatement - 1)
    return (
        f"Do not trust the throughput you measure. {at}, a trapped engine completes "
        f"{_rate(trapped.completions_per_s)}, {percent:.0f}% more than its all-miss capacity, because it serves young, "
        f"short turns (mean prompt {trapped.mean_prompt_tokens:,.0f} tokens). Its backlog still grows, by "
        f"{60 * trapped.backlog_per_s:.1f} sessions a minute; a cut to just below that throughput does not clear it."
    )


def _rescue(advice: Advice) -> str:
    drains = advice.rescue_per_s > advice.rate_per_s
    comparison = (
        "more than arrives, so the queue drains"
        if drains
        else f"no more than the {_rate(advice.rate_per_s)} that arrive, so the queue does not drain: cut arrivals too"
    )
    sessions = "session" if advice.rescue_cap == 1 else "sessions"
    return (
        f"Rescue without turning anyone away. Admit at most {advice.rescue_cap} {sessions} at a time, at the client; "
        "let paused sessions go before new ones, and take the cap off once nobody has waited for 300 s. The cap is "
        f"smaller than in 5 because a trap keeps long sessions (mean prompt {advice.long_prompt_tokens:,.0f} tokens "
        f"while they drain). With it a good engine completes about {_rate(advice.rescue_per_s)}, {comparison}."
    )


def _cut(advice: Advice) -> str:
    text = (
        f"Or cut arrivals to below {_rate(advice.lambda_miss_per_s)}. Nothing above that empties the queue, "
        "and just below it emptying takes very long."
    )
    if not advice.cuts:
        return text + " With --backlog (sessions present) this says how long."
    times = [
        f"{_duration(cut.empty_after_s)} at {_rate(cut.rate_per_s)}"
        if cut.rate_per_s
        else f"{_duration(cut.empty_after_s)} with none arriving"
        for cut in advice.cuts
    ]
    return f"{text} {advice.backlog} sessions present take {', '.join(times[:-1])} and {times[-1]}."


def _prevent(advice: Advice) -> str:
    half = f"half of the follow-ups miss at about {advice.half_hit:.0f}" if math.isfinite(advice.half_hit) else ""
    sessions = "session" if advice.prevention_cap == 1 else "sessions"
    return (
        f"Prevent the next one. Keep a cap of {advice.prevention_cap} admitted {sessions} from the start: a third "
        f"below the {advice.onset:.1f} from which on the all-miss state can exist"
        + (f" ({half})" if half else "")
        + ". "
        f"That cap completes up to {_rate(advice.prevention_per_s)}."
    )
