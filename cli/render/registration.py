"""A frozen registration as text."""

from __future__ import annotations

import textwrap
from itertools import product

from cli.workflows.registered import Registered
from registry.design import Design, ReleaseWindow, Window
from registry.draft_workload import Frozen
from registry.plain_text import plain
from registry.predictor import Predictor
from registry.registration import Registration
from registry.replay import own_rate_per_s, replay_end_s
from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts


def registration_text(found: Registered) -> str:
    """What was promised: question, design, rule, predictions, caveats."""
    registration = found.registration
    draft, design = registration.draft, registration.draft.design
    lines = [
        f"{registration.tag}  {plain(draft.title)}",
        f"SHA-256 {registration.digest}",
        f"claim {registration.claim}; beacon {registration.beacon.chain} round {registration.beacon.round}",
        "",
        *_wrapped("question", draft.question),
        f"cell      {registration.cell.name}: {registration.cell.engine} {registration.cell.engine_version}, "
        f"{registration.cell.model}, {registration.cell.gpu}, pool {registration.cell.pool_tokens:,} tokens",
        f"design    {design.horizon_s:g} s; rates {_list(design.rates) or 'closed population'}; "
        f"seeds {_list(design.seeds.values)} ({design.seeds.binding})",
    ]
    if draft.session_scripts:
        lines += [_trace_words(draft.session_scripts), *replay_lines(registration)]
    lines += [f"  arm     {arm.name}: {_arm_words(arm)}" for arm in design.arms]
    lines += [f"  window  {_window_words(w)}" for w in design.windows]
    lines += ["", "rule"]
    lines += [f"  {r.arm}.{r.name}: {' '.join(r.text.split())}" for r in draft.rule.runs]
    lines += [f"  {r.arm}.{r.name} (reported): {' '.join(r.text.split())}" for r in draft.rule.reported]
    lines += [f"  rate: {draft.rule.rate.text}", *_frozen_lines(registration)]
    lines += [f"  predicts {_predictor_words(p)}" for p in draft.predictors]
    for name in ("caveats", "notes", "deviations", "amendments"):
        for text in draft.source.get(name, []):
            lines += _wrapped(name.rstrip("s"), text)
    lines += _wrapped("blindness", draft.source["blindness"])
    return "\n".join(lines)


def _trace_words(frozen: Frozen) -> str:
    """How many sessions of a trace, and where their scripts are."""
    counts = frozen.counts
    return (
        f"  trace   {counts['sessions']:,} of {counts['sessions_read']:,} sessions, {counts['turns']:,} turns; "
        f"{counts['excluded']:,} were too large, {counts['malformed']:,} lines unread; "
        f"workloads/{frozen.scripts.sha256}.json"
    )


def replay_lines(registration: Registration) -> list[str]:
    """Where a trace's arrivals are replayed: the rate that is its own, and at
    which rates they end before a run does.
    """
    design = registration.draft.design
    workload, calibration = design.workload, registration.calibration
    if not isinstance(workload, ScriptedWorkload) or not workload.replayed:
        return []
    scripts, own_per_s = workload.scripts, own_rate_per_s(workload.scripts)
    multiple = f", or {own_per_s / calibration.lambda_ref_per_s:.6g} lambda_ref" if calibration else ""
    own = (
        f"  replay  base arrivals are the trace's own, the same for every seed: {len(scripts.turns):,} sessions in "
        f"{scripts.arrival_span_us / 1e6:,.6g} s of its clock, {own_per_s:.6g} sessions/s{multiple}"
    )
    return [own, *(_early_ends(design, scripts, calibration.lambda_ref_per_s) if calibration else [])]


def _early_ends(design: Design, scripts: SessionScripts, lambda_ref_per_s: float) -> list[str]:
    """The rates and arms whose runs go on when no session of the trace is left."""
    ends: dict[tuple[float, float], list[str]] = {}
    for rate, arm in product(design.rates, design.arms):
        end_s = replay_end_s(scripts, rate * lambda_ref_per_s, rate, arm.cut)
        if arm.population is None and end_s < design.horizon_of(arm):
            ends.setdefault((rate, end_s), []).append(arm.name)
    return [
        f"  replay  at {rate:g} the trace ends before the run: after {end_s:,.0f} s no base session arrives "
        f"({', '.join(arms)})"
        for (rate, end_s), arms in ends.items()
    ]


def _window_words(window: Window | ReleaseWindow) -> str:
    if isinstance(window, Window):
        return f"{window.name}: [{window.start_s:g}, {window.end_s:g}) s"
    return f"{window.name}: [release of the same seed's {window.from_release_of} run, {window.end_s:g} s)"


def _arm_words(arm: object) -> str:
    from dataclasses import asdict, is_dataclass

    assert is_dataclass(arm) and not isinstance(arm, type)
    fields = {k: v for k, v in asdict(arm).items() if k != "name" and v is not None and (k, v) != ("caching", True)}
    words = []
    for key, value in fields.items():
        inner = (
            ", ".join(f"{k} {v}" for k, v in value.items() if v is not None)
            if isinstance(value, dict)
            else str(value).lower()
        )
        words.append(f"{key} ({inner})" if isinstance(value, dict) else f"{key} {inner}")
    return "; ".join(words) or "base arrivals alone"


def _predictor_words(predictor: Predictor) -> str:
    value = "computed on the drawn plans"
    if isinstance(predictor.value, bool):
        value = "yes" if predictor.value else "no"
    elif predictor.value is not None:
        value = f"{predictor.value:g}" + (f" times {predictor.times}" if predictor.times else "")
    at = "at every rate" if predictor.rate is None else f"at {predictor.rate:g}"
    if predictor.verdict is not None:
        return f"{predictor.arm} {at}, verdict {predictor.verdict}: {value} ({predictor.kind})"
    return (
        f"{predictor.arm} {at}, {predictor.window}.{predictor.reading}: {value} "
        f"± {predictor.relative_tolerance:.0%} ({predictor.kind})"
    )


def _frozen_lines(registration: Registration) -> list[str]:
    lines = [""]
    if registration.calibration:
        c = registration.calibration
        lines.append(
            f"calibrated by reg/{c.registration}/v{c.version}: {c.all_miss_prefill_tokens_per_s:.1f} tokens/s, "
            f"lambda_ref {c.lambda_ref_per_s:.5f}/s"
        )
    if registration.engine:
        setup = registration.engine
        started = plain(" ".join([*setup.command, *setup.arguments]) or str(setup.url), 400)
        lines.append(f"runs on a real engine, {setup.adapter}: {started}; model {plain(setup.model)}")
    if registration.plan_source:
        lines.append(f"plans taken from {registration.plan_source.tag}; they existed before this registration")
    for rate in (registration.rehearsal or {}).get("rates", []):
        name = "closed" if rate["rate"] is None else f"{rate['rate']:g}"
        lines.append(f"rehearsed (simulated, literal seeds) at {name}: would pass {rate['pass_share']:.0%} of the time")
    return [*lines, ""]


def _list(values: tuple[object, ...]) -> str:
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)


def _wrapped(name: str, text: str) -> list[str]:
    return textwrap.wrap(f"{name:<10}{plain(text, 4000)}", 100, subsequent_indent=" " * 10)
