"""The checks of one run's records against its registration and plan.

Pure functions over columns already read. Each names the first row that
contradicts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from modelf.cells import Cell
from registry.design import Arm, Design, RunId
from registry.plan import MICROSECONDS, Plan
from registry.timestamps import parse_timestamp
from verifier.check import Check, proven, refuted
from verifier.readings import RunFrames
from verifier.turn_sizes import session_number, turn_sizes

_ORDER = ("planned_s", "ready_s", "admitted_s", "submit_s", "start_s", "first_token_s", "done_s")


@dataclass(frozen=True)
class RunContext:
    """What a run's records are held against; `cell` is as the arm has it."""

    run: RunId
    arm: Arm
    design: Design
    cell: Cell
    plan: Plan

    @property
    def horizon_s(self) -> float:
        """When the run ended, seconds from its start."""
        return self.design.horizon_of(self.arm)


def check_identity(fields: dict[str, Any], digest: str, run: RunId, attempt: int) -> Check:
    """The run record is of this registration, arm, rate, seed and attempt."""
    name = "identity"
    expected = {
        "registration_digest": digest,
        "arm": run.arm,
        "rate": run.rate,
        "seed": run.seed,
        "attempt": attempt,
        "exploratory": False,
    }
    for key, value in expected.items():
        if fields.get(key) != value:
            return refuted(name, f"run.json says {key} {fields.get(key)!r}, its place says {value!r}")
    if parse_timestamp(fields.get("started_at")) is None:
        return refuted(name, f"run.json says it started at {fields.get('started_at')!r}, which is no UTC time")
    return proven(name, "run.json is of this registration, arm, rate, seed and attempt")


def check_arrivals(frames: RunFrames, context: RunContext) -> Check:
    """Every planned session is there, when planned and as long as planned."""
    name = "plan"
    sessions = frames.sessions
    planned = _planned_sessions(frames, context)
    found = list(zip(sessions.session, sessions.origin, sessions.planned_turns, strict=True))
    if len(planned) != len(found):
        return refuted(name, f"{len(found)} sessions in the records, {len(planned)} in the plan of this registration")
    for (session, origin, turns, arrival_s), row, arrived in zip(planned, found, sessions.arrival_s, strict=True):
        if (session, origin, turns) != row or (arrival_s is not None and arrival_s != arrived):
            return refuted(
                name,
                f"session {row[0]} ({row[2]} turns, arrival {arrived} s) is not the plan's "
                f"{session} ({turns} turns, arrival {arrival_s} s): not the plan of this registration",
            )
    return proven(name, f"{len(planned)} planned sessions accounted for")


def _planned_sessions(frames: RunFrames, context: RunContext) -> list[tuple[str, str, int, float | None]]:
    plan = context.plan
    if context.arm.population is None:
        sizes = {"base": len(plan.base_arrivals_us), "burst": len(plan.burst_arrivals_us)}
        turns = {origin: plan.draws(origin, size).turns.tolist() for origin, size in sizes.items()}
        return [
            (f"{origin}-{index}", origin, turns[origin][index], time_us / MICROSECONDS)
            for time_us, origin, index in plan.arrivals()
        ]
    count = max(len(frames.sessions), context.arm.population)
    drawn = plan.draws("population", count).turns.tolist()
    return [(f"population-{i}", "population", drawn[i], None) for i in range(count)]


def check_population(frames: RunFrames, context: RunContext) -> Check:
    """A closed population starts its next session when one ends."""
    name = "population"
    size = context.arm.population
    if size is None:
        return proven(name, "open arrivals", needed=False)
    arrivals = np.sort(frames.sessions.arrival_s.to_numpy())
    ends = np.sort(frames.sessions.end_s.dropna().to_numpy())
    expected = np.concatenate([np.zeros(size), ends])[: len(arrivals)]
    if len(arrivals) < size or not np.array_equal(arrivals, expected):
        return refuted(name, f"the sessions were not a population of {size} kept running")
    return proven(name, f"{size} sessions were kept running")


def check_turns(frames: RunFrames, context: RunContext) -> Check:
    """Turns follow their sessions: tool times of the plan, prompts of the law or script."""
    name = "turns"
    turns, sizes = frames.turns, turn_sizes(frames, context.plan, context.cell)
    if sizes is None:
        return refuted(name, "a turn number outside the turn law, or a turn of no planned session")
    for column, expected in (("prompt_tokens", sizes.prompt_tokens), ("reusable_tokens", sizes.reusable_tokens)):
        wrong = np.flatnonzero(turns[column].to_numpy() != expected)
        if len(wrong):
            return refuted(name, f"{_turn(turns, wrong[0])}: {column} is not the workload's")
    problem = _chain_problem(turns, frames.sessions, context)
    return refuted(name, problem) if problem else proven(name, f"{len(turns)} turns follow their plan")


def _chain_problem(turns: pd.DataFrame, sessions: pd.DataFrame, context: RunContext) -> str | None:
    """The first turn that does not follow from its predecessor, if any."""
    codes = pd.Index(sessions.session).get_indexer(turns.session)
    if (codes < 0).any():
        stray = turns.iloc[int(np.flatnonzero(codes < 0)[0])]
        return f"turn {stray.turn} is of a session {stray.session} that never arrived"
    order = np.lexsort((turns.turn.to_numpy(), codes))
    code, turn = codes[order], turns.turn.to_numpy()[order]
    first = np.concatenate([[True], code[1:] != code[:-1]])[: len(code)]
    expected_turn = np.where(first, 1, np.roll(turn, 1) + 1)
    previous_done_s = np.roll(turns.done_s.to_numpy()[order], 1)
    tool_s = _tool_times(sessions, context)[code, np.clip(turn - 2, 0, None)]
    if slowdown := context.arm.tool_slowdown:
        tool_s = tool_s + np.array([slowdown.added_s(time_s) for time_s in previous_done_s])
    expected_s = np.where(first, sessions.arrival_s.to_numpy()[code], previous_done_s + tool_s)
    planned_s = turns.planned_s.to_numpy()[order]
    wrong = np.flatnonzero((turn != expected_turn) | (planned_s != expected_s))
    if len(wrong):
        at = wrong[0]
        session = sessions.session.iloc[int(code[at])]
        return f"turn {turn[at]} of {session} was planned at {planned_s[at]} s, the plan says {expected_s[at]} s"
    ok = codes[(turns.outcome == "ok").to_numpy(dtype=bool)]
    finished = np.bincount(ok, minlength=len(sessions))
    wrong = np.flatnonzero(finished != sessions.turns_done.to_numpy())
    if len(wrong):
        row = sessions.iloc[int(wrong[0])]
        return f"{row.session} says {row.turns_done} turns done, its turns say {finished[wrong[0]]}"
    return _turn_left_out(turns, sessions, codes, context)


def _turn_left_out(
    turns: pd.DataFrame, sessions: pd.DataFrame, codes: npt.NDArray[np.intp], context: RunContext
) -> str | None:
    """The first turn that became due before the horizon and has no row, if any."""
    turn, done_s = turns.turn.to_numpy(), turns.done_s.to_numpy()
    held = np.bincount(codes, minlength=len(sessions))
    if not held.all():
        return f"{sessions.session.iloc[int(np.flatnonzero(held == 0)[0])]} arrived, and has no turn"
    # Turns are numbered without a gap here: the last one's number is their count.
    last = (turn == held[codes]) & (turns.outcome == "ok").to_numpy(dtype=bool)
    after_s = _tool_times(sessions, context)[codes, np.clip(turn - 1, 0, None)]
    if slowdown := context.arm.tool_slowdown:
        after_s = after_s + np.array([slowdown.added_s(time_s) for time_s in done_s])
    due_s = done_s + after_s
    left_out = np.flatnonzero(last & (due_s < context.horizon_s))
    if not len(left_out):
        return None
    at = left_out[0]
    return f"turn {turn[at] + 1} of {turns.session.iloc[int(at)]} became due at {due_s[at]} s, and is not there"


def _tool_times(sessions: pd.DataFrame, context: RunContext) -> npt.NDArray[np.float64]:
    """Planned tool times in seconds, shape (sessions, max_turns); NaN beyond.

    `check_arrivals` has seen that an origin's sessions are numbered from 0.
    """
    times = np.full((len(sessions), context.plan.workload.turns.max_turns), np.nan)
    numbers = np.array([session_number(name) for name in sessions.session], dtype=np.int64)
    after = np.arange(times.shape[1])
    for origin in ("base", "burst", "population"):
        rows = np.flatnonzero((sessions.origin == origin).to_numpy(dtype=bool))
        rows = rows[(numbers[rows] >= 0) & (numbers[rows] < len(rows))]
        draws, index = context.plan.draws(origin, len(rows)), numbers[rows]
        planned = after < draws.turns[index, None] - 1
        place = np.where(planned, draws.first_tool[index, None] + after, 0)
        if len(rows):
            times[rows] = np.where(planned, draws.tool_us[place] / MICROSECONDS, np.nan)
    return times


def check_conservation(frames: RunFrames, context: RunContext) -> Check:
    """Tokens are conserved and times run forwards."""
    name = "conservation"
    turns, sizes = frames.turns, turn_sizes(frames, context.plan, context.cell)
    if sizes is None:
        return refuted(name, "a turn number outside the turn law, or a turn of no planned session")
    ok = turns[turns.outcome == "ok"]
    wrong = turns.index[(turns.outcome == "ok") & (turns.output_tokens != sizes.output_tokens)]
    if len(wrong):
        return refuted(name, f"{_turn(turns, wrong[0])}: output tokens are not the workload's")
    cached = turns.cached_tokens.fillna(0)
    bad = turns.index[(cached < 0) | (cached > turns.prompt_tokens - 1) | (cached > sizes.most_cached)]
    if len(bad):
        return refuted(name, f"{_turn(turns, bad[0])}: more cached tokens than could be reused")
    for earlier, later in pairwise(_ORDER):
        late = turns.index[(turns[earlier] > turns[later]).to_numpy()]
        if len(late):
            return refuted(name, f"{_turn(turns, late[0])}: {earlier} is after {later}")
    unfinished = ok.index[ok.done_s.isna()]
    if len(unfinished):
        return refuted(name, f"{_turn(turns, unfinished[0])}: ok without an end")
    return proven(name, "tokens conserved, times in order")


def _turn(turns: pd.DataFrame, index: Any) -> str:
    row = turns.loc[index]
    return f"turn {row.turn} of {row.session}"


PLAN_CHECKS = (
    check_arrivals,
    check_population,
    check_turns,
    check_conservation,
)
"""The checks of one run against its plan, in order."""
