"""The checks that an arm's gate did what the registration says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from registry.design import GateSetting
from verifier.check import Check, proven, refuted
from verifier.readings import RunFrames
from verifier.releases import due_release_s, first_release_s
from verifier.run_checks import RunContext
from verifier.turn_sizes import turn_sizes

RELEASE_TOLERANCE_S = 1e-6
"""The gate's log and the turns bear the same clock's times; sums may round."""


def check_gate(frames: RunFrames, context: RunContext) -> Check:
    """The gate's log is that of the arm's gate: engaged when said, never above."""
    name = "arm_gate"
    gate, log = context.arm.gate, frames.gate[frames.gate.event != "refused"]
    if gate is None:
        return refuted(name, "a gate's log in an arm without one") if len(log) else proven(name, "no gate")
    engaged = log.time_s[log.event == "engaged"]
    if list(engaged) != [gate.engage_s]:
        return refuted(name, f"the cap engaged at {list(engaged)} s, the arm says {gate.engage_s} s")
    if gate.release_after_s is None and (log.event == "released").any():
        return refuted(name, "the cap was released, and the arm keeps it on")
    sizes = turn_sizes(frames, context.plan, context.cell)
    if sizes is None:
        return refuted(name, "a turn of no planned session")
    release = log.time_s[log.event == "released"]
    until_s = float(release.iloc[0]) if len(release) else math.inf
    time_s, change, count = _held(frames, gate, until_s, sizes.output_tokens)
    held, holders = np.cumsum(change), np.cumsum(count)
    limit = _limit(gate, time_s, context.cell.pool_tokens)
    over = np.flatnonzero((held > limit) & (holders > 1))
    unit = "sessions" if gate.cap is not None else "tokens"
    if len(over):
        at = over[0]
        return refuted(
            name, f"{held[at]} {unit} were admitted at once at {time_s[at]} s, the cap is {math.floor(limit[at])}"
        )
    return proven(name, f"at most {max(held, default=0)} {unit} admitted at once, as the arm's gate allows")


def check_release(frames: RunFrames, context: RunContext) -> Check:
    """The gate came off when both queues had been empty as long as the arm
    says, no sooner and no later: windows may begin there.
    """
    name, gate = "arm_release", context.arm.gate
    if gate is None:
        return proven(name, "no gate", needed=False)
    found_s, due_s = first_release_s(frames.gate), due_release_s(frames.turns, gate, context.horizon_s)
    if not (abs(found_s - due_s) <= RELEASE_TOLERANCE_S or (math.isnan(found_s) and math.isnan(due_s))):
        return refuted(name, f"the cap came off at {found_s} s, by the waits of the turns it was due at {due_s} s")
    return proven(name, "never released" if math.isnan(due_s) else f"released at {due_s:.1f} s, when it was due")


def _held(
    frames: RunFrames, gate: GateSetting, until_s: float, output_tokens: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """(time_s, change of what is held, of who holds), in order of time.

    A turn that the gate let go holds its weight until its session's next turn
    is due or its session ends; what is freed at an instant goes first.
    """
    turns = frames.turns.assign(planned_output=output_tokens).sort_values(["session", "turn"])
    same = turns.session.eq(turns.session.shift(-1))
    ends = turns.session.map(frames.sessions.set_index("session").end_s)
    freed_s = turns.planned_s.shift(-1).where(same, ends)
    chosen = (turns.admitted_s >= gate.engage_s) & (turns.admitted_s < until_s) & (turns.outcome != "refused")
    start_s, stop_s = turns.admitted_s[chosen].to_numpy(), freed_s[chosen].to_numpy()
    tokens = (turns.prompt_tokens + turns.planned_output)[chosen].to_numpy()
    weight = np.ones(len(tokens), dtype=np.int64) if gate.cap is not None else tokens
    stops = ~np.isnan(stop_s)
    time_s = np.concatenate([start_s, stop_s[stops]])
    change = np.concatenate([weight, -weight[stops]])
    order = np.lexsort((change > 0, time_s))
    return time_s[order], change[order], np.sign(change[order])


def _limit(gate: GateSetting, time_s: npt.NDArray[np.float64], pool_tokens: int) -> npt.NDArray[np.float64]:
    """The most that the gate may let be held at each time."""
    if gate.cap is None:
        return np.full(len(time_s), float(int((gate.pool_share or 0.0) * pool_tokens)))
    limit = np.full(len(time_s), float(gate.cap))
    if gate.adaptation:
        limit += gate.adaptation.increase * np.floor((time_s - gate.engage_s) / gate.adaptation.interval_s)
    return limit


GATE_CHECKS = (check_gate, check_release)
"""The checks of one run against its arm's gate, in order."""
