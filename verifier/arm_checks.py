"""The checks that a run's arm was what it claims: cache, pool, refusals."""

from __future__ import annotations

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
    until = context.arm.burst.start_s if context.arm.burst else context.horizon_s
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


ARM_CHECKS = (check_caching, check_pool, check_refusals)
"""The checks of one run against its arm, in order."""
