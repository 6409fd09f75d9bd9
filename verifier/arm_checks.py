"""The checks that a run's arm was what it claims: cache, pool, gate."""

from __future__ import annotations

import pandas as pd

from verifier.check import Check, proven, refuted, unprovable
from verifier.readings import RunFrames
from verifier.run_checks import RunContext


def check_caching(frames: RunFrames, context: RunContext) -> Check:
    """The prefix cache was on, or off, as the arm says."""
    name = "arm_caching"
    followups = frames.turns[(frames.turns.turn >= 2) & (frames.turns.outcome == "ok")]
    if not context.arm.caching:
        hits = int((followups.cached_tokens > 0).sum())
        if hits:
            return refuted(name, f"caching is off in this arm, and {hits} follow-ups hit")
        return proven(name, "no follow-up hit: the cache was off")
    until = context.arm.burst.start_s if context.arm.burst else context.design.horizon_s
    early = followups[followups.done_s < until]
    if len(early) == 0:
        return unprovable(name, "no follow-up before the burst to show a hit", needed=False)
    hits = int((early.cached_tokens > 0).sum())
    if hits == 0:
        return refuted(name, f"none of {len(early)} follow-ups before the burst hit: caching was switched off")
    return proven(name, f"{hits} of {len(early)} follow-ups before the burst hit: the cache was on")


def check_pool(frames: RunFrames, context: RunContext) -> Check:
    """The engine's own gauges never show more than the pool of the arm."""
    name = "arm_pool"
    used = (frames.engine.running_tokens + frames.engine.idle_cached_tokens).dropna()
    if len(used) == 0:
        return unprovable(name, "the engine reported no pool use", needed=False)
    if used.max() > context.cell.pool_tokens:
        return refuted(name, f"{int(used.max())} tokens in a pool of {context.cell.pool_tokens}")
    return proven(name, f"at most {int(used.max())} of {context.cell.pool_tokens} tokens in the pool")


def check_gate(frames: RunFrames, context: RunContext) -> Check:
    """The gate's log is that of the arm's cap: engaged when said, never above."""
    name = "arm_gate"
    gate, log = context.arm.gate, frames.gate[frames.gate.event != "refused"]
    if gate is None:
        return refuted(name, "a gate's log in an arm without one") if len(log) else proven(name, "no gate")
    engaged = log.time_s[log.event == "engaged"]
    if list(engaged) != [gate.engage_s]:
        return refuted(name, f"the cap engaged at {list(engaged)} s, the arm says {gate.engage_s} s")
    if gate.release_after_s is None and (log.event == "released").any():
        return refuted(name, "the cap was released, and the arm keeps it on")
    admitted = log[log.event.isin(["admitted", "resumed"])]
    ends = frames.sessions.set_index("session").end_s
    release = log.time_s[log.event == "released"]
    until = float(release.iloc[0]) if len(release) else float("inf")
    peak = _peak(admitted[admitted.time_s < until], ends)
    if peak > gate.cap:
        return refuted(name, f"{peak} sessions were admitted at once, the cap is {gate.cap}")
    return proven(name, f"at most {peak} sessions admitted at once, cap {gate.cap}")


def _peak(admitted: pd.DataFrame, ends: pd.Series) -> int:
    """The most sessions that held a slot at once; ends free slots first."""
    starts = [(time, 1, 1) for time in admitted.time_s]
    stops = [(time, 0, -1) for time in ends.reindex(admitted.session.unique()).dropna()]
    held = peak = 0
    for _, _, step in sorted(starts + stops):
        held += step
        peak = max(peak, held)
    return peak


def check_refusals(frames: RunFrames, context: RunContext) -> Check:
    """Exactly the sessions that arrive while the arm sheds were refused."""
    name, shed = "arm_refusals", context.arm.shed
    sessions = frames.sessions
    turned_away = sessions.session[sessions.outcome == "refused"].tolist()
    logged = frames.gate.session[frames.gate.event == "refused"].tolist()
    expected = [s for s, at in zip(sessions.session, sessions.arrival_s, strict=True) if shed and shed.refuses(at)]
    if turned_away != expected or sorted(map(str, logged)) != sorted(expected):
        return refuted(
            name,
            f"{len(turned_away)} sessions were refused and {len(logged)} refusals logged, "
            f"the arm refuses {len(expected)}",
        )
    return proven(name, f"{len(expected)} sessions were refused, as the arm says" if shed else "none was refused")


ARM_CHECKS = (check_caching, check_pool, check_gate, check_refusals)
"""The checks of one run against its arm, in order."""
