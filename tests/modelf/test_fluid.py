"""The fluid server against the paper's figures, its theorems and slower code."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelf.costs import COSTS, mirror_costs
from modelf.fluid import FluidOrbit, fluid_orbit
from modelf.fluid_inputs import (
    PiecewiseConstant,
    Pulse,
    RatedArrivals,
    Scenario,
    SessionArrivals,
    Start,
    Vector,
    stationary_start,
)
from modelf.fluid_readings import window_readings
from modelf.published import published
from modelf.turn_law import FixedTurns, TabledTurns, TurnLaw, survivals
from modelf.workload import MIRROR_WORKLOAD, STANDARD_WORKLOAD, Workload
from registry.design import Arm, Burst, Design, Seeds
from registry.plan import make_plan, plan_key

CELL, TURNS = COSTS["sglang-300k"], STANDARD_WORKLOAD.turns
COST = CELL.turn_costs(STANDARD_WORKLOAD)
LAMBDA_MISS, LAMBDA_REF = CELL.lambda_miss(STANDARD_WORKLOAD), CELL.lambda_ref()
BURST = Pulse(200.0, 1200.0, 60.0)
CUT_S = 5000.0


def constant(rate: float, start: Start) -> Scenario:
    return Scenario(start, RatedArrivals(PiecewiseConstant((rate,))))


def table3(to_over_lambda_miss: float | None = None) -> Scenario:
    """Ten sessions at 1200 s, the burst, 1.65 lambda_ref, a cut at 5000 s."""
    rate = PiecewiseConstant((1.65 * LAMBDA_REF,))
    if to_over_lambda_miss is not None:
        rate = PiecewiseConstant((1.65 * LAMBDA_REF, to_over_lambda_miss * LAMBDA_MISS), (CUT_S,))
    return Scenario(stationary_start(TURNS, 1200.0, 10.0), RatedArrivals(rate, (BURST,)))


@lru_cache
def trapped(step_s: float = 1.0) -> FluidOrbit:
    return fluid_orbit(TURNS, COST, table3(), 8700.0, step_s)


def at(orbit: FluidOrbit, time_s: float, values: Vector) -> float:
    return float(np.interp(time_s, orbit.time_s, values))


def lotka_root(reproduction: Vector) -> float:
    """R with sum_k a_k R^-k = 1, by bisection."""
    powers = np.arange(1, len(reproduction) + 1)
    low, high = 1e-6, 1.0 + float(reproduction.sum())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float(reproduction @ middle**-powers) > 1 else (low, middle)
    return (low + high) / 2


def remaining_work(law: TurnLaw, costs: Vector) -> Vector:
    """Work still to come of a session about to do turn k, term by term."""
    s = survivals(law)
    return np.array([sum(s[j] / s[k] * costs[j] for j in range(k, len(s))) for k in range(len(s))])


# --- the paper's Table 3 -----------------------------------------------------


def test_table_3() -> None:
    printed = published()["table3_cut_at_5000s"]
    # "251": the page prints the whole part.
    assert at(trapped(), CUT_S, trapped().present) == pytest.approx(printed["sessions_at_5000s"] + 0.5, rel=0.01)
    for row in printed["rows"][:5]:
        orbit = fluid_orbit(TURNS, COST, table3(row["to_over_lambda_miss"]), 30000.0)
        found = (orbit.lowest_present(CUT_S)[1], float(orbit.present[-1]))
        print(row, found)
        assert found[0] == pytest.approx(row["min"], rel=0.01)
        assert found[1] == pytest.approx(row.get("at_30000s", row.get("settles")), rel=0.01)
        assert orbit.emptied_at(CUT_S) is None


def test_the_cut_below_capacity_empties_after_its_busy_period() -> None:
    empty_s = published()["table3_cut_at_5000s"]["rows"][5]["empty_at_s"]
    work = at(trapped(), CUT_S, trapped().remaining_work_s)
    rho = 1 - work / (empty_s - CUT_S)
    print("rate that empties when the page says, in lambda_miss:", rho)
    assert rho == pytest.approx(0.9, abs=0.002)
    for cut in (0.9, rho):
        orbit = fluid_orbit(TURNS, COST, table3(cut), 62000.0, 2.0)
        assert orbit.emptied_at(CUT_S) == pytest.approx(CUT_S + work / (1 - cut), rel=1e-6)
        assert orbit.emptied_at(CUT_S) == pytest.approx(empty_s, rel=0.01)


# --- identities --------------------------------------------------------------


def recursion_errors(step_s: float) -> Vector:
    """Lemma 1 along one orbit: errors of its cycles, relative."""
    law = TabledTurns((3, 2, 2, 1, 1))
    costs = np.array([2.0, 2.5, 3.0, 4.0, 4.5])
    survival = np.array(survivals(law))
    rate = 1.3 / float(survival @ costs)
    start = Start(0.0, (9.0, 1.0, 4.0, 0.0, 2.0))
    orbit = fluid_orbit(law, costs, constant(rate, start), 3000.0, step_s)
    cycles, now = [], 0.0
    while now <= 3000.0:
        cycles.append(at(orbit, now, orbit.gap_s))
        now += cycles[-1]
    mass, expected = np.array(start.pending), []
    for n in range(len(cycles)):
        ages = np.arange(1, min(n, 5) + 1)
        born = sum(rate * survival[k - 1] * costs[k - 1] * cycles[n - k] for k in ages)
        expected.append(float(mass @ costs) + born)
        mass = np.concatenate([[0.0], mass[:-1] * survival[1:] / survival[:-1]])
    assert len(cycles) > 15
    return np.asarray(np.abs(np.array(cycles) / np.array(expected) - 1))


@pytest.mark.parametrize("step_s", [40.0, 4.0, 0.25])
def test_cycles_obey_the_recursion(step_s: float) -> None:
    """Exactly, at any step: bends are knots."""
    assert recursion_errors(step_s).max() < 1e-11


def conserved(orbit: FluidOrbit, law: TurnLaw, costs: Vector) -> None:
    """Sessions and work add up, by sums the solver does not make."""
    s = np.array([*survivals(law), 0.0])
    scale = max(float(orbit.entered[-1]), 1.0)
    leaving = orbit.served @ (1 - s[1:] / s[:-1])
    np.testing.assert_allclose(orbit.completed, leaving, atol=1e-9 * scale)
    np.testing.assert_allclose(orbit.present + leaving, orbit.entered, atol=1e-9 * scale)
    waiting = orbit.joined - orbit.served
    assert waiting.min() > -1e-9 * scale and np.diff(orbit.served, axis=0).min() > -1e-9 * scale
    np.testing.assert_allclose(waiting @ costs, orbit.pending_work_s, atol=1e-8 * scale * costs.max())
    work = waiting @ remaining_work(law, costs)
    np.testing.assert_allclose(work, orbit.remaining_work_s, atol=1e-8 * scale * costs.sum())


@st.composite
def small_workloads(draw: st.DrawFn) -> tuple[TurnLaw, Vector, float, Start]:
    size = draw(st.integers(1, 7))
    weights = (*draw(st.lists(st.integers(0, 5), min_size=size - 1, max_size=size - 1)), draw(st.integers(1, 5)))
    cost = st.floats(0.3, 3.0)
    costs = np.array(draw(st.lists(cost, min_size=size, max_size=size)))
    mass = st.floats(0.0, 20.0)
    pending = (draw(st.floats(0.5, 20.0)), *draw(st.lists(mass, min_size=size - 1, max_size=size - 1)))
    return TabledTurns(weights), costs, draw(st.floats(1.25, 2.5)), Start(draw(st.floats(-50, 50)), pending)


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[TurnLaw, Vector, Scenario]:
    law, costs, _, start = draw(small_workloads())
    capacity = 1 / float(np.array(survivals(law)) @ costs)
    times = st.integers(-60, 200).map(float)
    changes = tuple(sorted(draw(st.sets(times, max_size=4))))
    loads = draw(st.lists(st.sampled_from([0.0, 0.3, 0.9, 0.995, 1.0, 1.2, 3.0]), min_size=5, max_size=5))
    rate = PiecewiseConstant(tuple(capacity * load for load in loads[: len(changes) + 1]), changes)
    pulse = st.builds(Pulse, st.floats(0, 30), times, st.sampled_from([0.0, 0.0, 5.0, 40.0]))
    slow = tuple(sorted(draw(st.sets(times, max_size=2))))
    speed = PiecewiseConstant((1.0, 0.5, 1.7)[: len(slow) + 1], slow)
    if draw(st.booleans()):
        start = Start(start.at_s)
    return law, costs, Scenario(start, RatedArrivals(rate, tuple(draw(st.lists(pulse, max_size=3)))), speed)


@given(scenarios(), st.sampled_from([0.7, 4.0, 30.0]))
@settings(max_examples=200, deadline=None)
def test_any_scenario_conserves_sessions_and_work(drawn: tuple[TurnLaw, Vector, Scenario], step_s: float) -> None:
    law, costs, scenario = drawn
    orbit = fluid_orbit(law, costs, scenario, 300.0, step_s)
    conserved(orbit, law, costs)
    assert orbit.time_s[-1] == pytest.approx(300.0) and np.diff(orbit.time_s).min() > -1e-9
    assert orbit.gap_s.min() > -1e-9 and orbit.present.min() > -1e-9
    # The server does no more work than its speed allows, but for short cycles near a load of 1.
    work = np.diff(orbit.served @ costs)
    able = np.diff(scenario.speed.integral(scenario.start.at_s, orbit.time_s))
    overdone = np.maximum(work - able, 0).sum()
    assert overdone <= 1e-6 + step_s * costs.sum() / 16


@pytest.mark.parametrize("step_s", [0.5, 7.0])
def test_sessions_and_work_are_conserved(step_s: float) -> None:
    orbit = fluid_orbit(TURNS, COST, table3(0.3), 20000.0, step_s)
    assert orbit.emptied_at(CUT_S) is not None
    conserved(orbit, TURNS, COST)
    assert orbit.entered[0] == pytest.approx(10.0)
    expected = 210 + 1.65 * LAMBDA_REF * 3800 + 0.3 * LAMBDA_MISS * 15000
    assert orbit.entered[-1] == pytest.approx(expected, rel=1e-12)


def test_work_changes_at_load_less_one_while_busy() -> None:
    orbit = trapped()
    later = orbit.time_s >= 1300.0
    times, rho = orbit.time_s[later], 1.65 * LAMBDA_REF / LAMBDA_MISS
    work = ((orbit.joined - orbit.served) @ remaining_work(TURNS, COST))[later]
    np.testing.assert_allclose(work - work[0], (rho - 1) * (times - times[0]), atol=1e-7)


@pytest.mark.parametrize("rho", [0.0, 0.2, 0.5, 0.8, 0.95])
def test_subcritical_busy_period(rho: float) -> None:
    start = stationary_start(TURNS, 0.0, 30.0)
    work = float(np.array(start.pending) @ remaining_work(TURNS, COST))
    end = work / (1 - rho)
    orbit = fluid_orbit(TURNS, COST, constant(rho * LAMBDA_MISS, start), end + 500, 1.5)
    assert orbit.emptied_at(0.0) == pytest.approx(end, rel=1e-9)
    # Once empty, a queue below capacity stays so, and completes what arrives.
    later = orbit.time_s > end + 1e-6
    assert orbit.present[later].max() < 1e-9 and orbit.gap_s[later].max() < 1e-9
    readings = window_readings(orbit, STANDARD_WORKLOAD, end + 1, end + 500)
    assert readings["completions_per_s"] == pytest.approx(rho * LAMBDA_MISS)
    assert readings["outstanding"] == pytest.approx(0, abs=1e-9)


def test_beyond_the_busy_period() -> None:
    """At rho = 1 the queue levels; with arrivals stopped it empties after W."""
    level = fluid_orbit(TURNS, COST, table3(1.0), 60000.0, 4.0)
    assert level.present[-1] == pytest.approx(at(level, 50000.0, level.present), rel=1e-6)
    assert level.remaining_work_s[-1] == pytest.approx(at(level, CUT_S, level.remaining_work_s), rel=1e-9)
    stopped = fluid_orbit(TURNS, COST, table3(0.0), 12000.0)
    work = at(stopped, CUT_S, stopped.remaining_work_s)
    assert stopped.emptied_at(CUT_S) == pytest.approx(CUT_S + work, rel=1e-9)


@given(
    factor=st.floats(0.2, 6.0),
    by_speed=st.booleans(),
)
@settings(max_examples=10, deadline=None)
def test_a_uniform_speed_up_leaves_the_mix(factor: float, by_speed: bool) -> None:
    """Remark 1: equal rho, all times `factor` shorter, the same masses."""
    start = stationary_start(TURNS, 0.0, 40.0)
    slow = fluid_orbit(TURNS, COST, constant(1.4 * LAMBDA_MISS, start), 1200.0, 4.0)
    scenario = constant(1.4 * LAMBDA_MISS * factor, start)
    costs = COST if by_speed else COST / factor
    if by_speed:
        scenario = replace(scenario, speed=PiecewiseConstant((factor,)))
    fast = fluid_orbit(TURNS, costs, scenario, 1200.0 / factor, 4.0 / factor)
    for time in (300.0, 777.0, 1199.0):
        assert at(fast, time / factor, fast.gap_s) * factor == pytest.approx(at(slow, time, slow.gap_s), rel=1e-6)
        for turn in (0, 7, 30):
            expected = at(slow, time, slow.served[:, turn])
            assert at(fast, time / factor, fast.served[:, turn]) == pytest.approx(expected, rel=1e-6)


def test_a_slowdown_is_a_higher_load() -> None:
    """Half speed from 1000 to 1900 s: W grows at lambda / lambda_miss - 1/2."""
    start = stationary_start(TURNS, 0.0, 5.0)
    speed = PiecewiseConstant((1.0, 0.5, 1.0), (1000.0, 1900.0))
    scenario = replace(constant(0.8 * LAMBDA_MISS, start), speed=speed)
    orbit = fluid_orbit(TURNS, COST, scenario, 6000.0)
    conserved(orbit, TURNS, COST)
    work = np.interp([1000.0, 1900.0], orbit.time_s, orbit.remaining_work_s)
    assert work[0] == pytest.approx(0, abs=1e-9) and work[1] == pytest.approx(0.3 * 900, abs=0.05)
    assert orbit.emptied_at(1901.0) == pytest.approx(1900 + work[1] / 0.2, rel=1e-9)
    # What joins while the server is slow waits for its work at the speeds to come.
    assert at(orbit, 1500.0, orbit.gap_s) == pytest.approx(2 * at(orbit, 1500.0, orbit.pending_work_s), rel=1e-6)


# --- convergence -------------------------------------------------------------


@given(small_workloads())
@settings(max_examples=200, deadline=None)
def test_every_start_converges_to_the_self_similar_regime(drawn: tuple[TurnLaw, Vector, float, Start]) -> None:
    """Theorem 1(a): V grows by 1 - 1/R per completion time, turns served
    follow w_k = S_k R^-(k-1), sessions complete at lambda sum f_k R^-k.
    """
    law, costs, rho, start = drawn
    survival = np.array(survivals(law))
    rate = rho / float(survival @ costs)
    reproduction = rate * survival * costs
    root = lotka_root(reproduction)
    others = np.sort(np.abs(np.roots([1.0, *-reproduction])))[:-1]
    contraction = max(float(others.max()) / root if others.size else 0.0, 1 / root)
    first = float(np.array(start.pending) @ costs)
    # The time by which all but about 1e-3 of the start is forgotten.
    span = min(first * root ** (math.log(1e-3) / math.log(contraction)), 1e9) + 10 * first
    end = start.at_s + 4 * span
    orbit = fluid_orbit(law, costs, constant(rate, start), end, span / 400)
    conserved(orbit, law, costs)
    workload = Workload(law, 1000, 100, 500, 0.0)
    readings = window_readings(orbit, workload, end - span, end)
    tilted = survival * root ** -np.arange(law.max_turns)
    leaving = survival - np.append(survival[1:], 0.0)
    throughput = rate * float(leaving @ root ** -np.arange(1.0, law.max_turns + 1))
    assert readings["sojourn_slope"] == pytest.approx(1 - 1 / root, rel=0.02)
    assert readings["mean_prompt_tokens"] == pytest.approx(float(tilted @ workload.prompts()) / tilted.sum(), rel=0.01)
    assert readings["completions_per_s"] == pytest.approx(throughput, rel=0.02, abs=1e-3 * rate)
    assert readings["backlog_slope_per_s"] == pytest.approx(rate - throughput, rel=0.02)


def test_a_busy_orbit_does_not_depend_on_the_step() -> None:
    for time in (1233.3, 2000.0, 5003.3, 8699.0):
        for name in ("present", "gap_s", "completed", "joined_at_s"):
            fine, coarse = (at(trapped(step), time, getattr(trapped(step), name)) for step in (0.5, 100.0))
            assert coarse == pytest.approx(fine, rel=1e-10)
    fine_readings, coarse_readings = (
        window_readings(trapped(step), STANDARD_WORKLOAD, 5700, 8700) for step in (0.5, 100.0)
    )
    assert coarse_readings == pytest.approx(fine_readings, rel=1e-9)


def test_emptying_within_a_step_costs_little() -> None:
    """The orbit is one line from where the work left ends within a step."""
    start = stationary_start(TURNS, 0.0, 3.0)
    work = float(np.array(start.pending) @ remaining_work(TURNS, COST))
    averages = []
    for step in (1.6, 0.4, 0.1, 0.0125):
        orbit = fluid_orbit(TURNS, COST, constant(0.5 * LAMBDA_MISS, start), 2 * work + 20, step)
        assert orbit.emptied_at(0.0) == pytest.approx(2 * work, rel=1e-9)
        averages.append(window_readings(orbit, STANDARD_WORKLOAD, 0, 2 * work + 10)["outstanding"])
    errors = np.abs(np.array(averages[:-1]) - averages[-1])
    assert errors.max() < 1e-8 and errors[-1] < errors[0] / 16


def test_from_empty_a_trap_starts_in_its_regime() -> None:
    """Where nothing is pending at a load above 1, V grows from 0, after a
    wait in proportion to the step.
    """
    errors = []
    for step in (16.0, 4.0):
        orbit = fluid_orbit(TURNS, COST, constant(1.6 * LAMBDA_MISS, Start(0.0)), 3000.0, step)
        conserved(orbit, TURNS, COST)
        errors.append(abs(at(orbit, 3000.0, orbit.remaining_work_s) / (0.6 * 3000) - 1))
    assert errors[1] < errors[0] / 3 and errors[1] < 1e-3


# --- slower code -------------------------------------------------------------


def parcels(law: TurnLaw, costs: Vector, scenario: Scenario, until_s: float, step: float) -> tuple[float, float]:
    """Sessions present and V at the end, moving parcels of mass by hand; what
    rejoins in a step waits for its end. First order.
    """
    s = np.array(survivals(law))
    assert isinstance(scenario.arrivals, RatedArrivals)
    queue = deque([np.array(scenario.start.pending)])
    (pulse,) = scenario.arrivals.pulses
    for i in range(round((until_s - scenario.start.at_s) / step)):
        now = scenario.start.at_s + i * step
        joining = np.zeros(law.max_turns)
        rate = scenario.arrivals.rate.at(np.array([now + step / 2]))[0]
        joining[0] = step * (
            rate + pulse.sessions / pulse.spread_s * (pulse.start_s <= now < pulse.start_s + pulse.spread_s)
        )
        left = step
        while queue and left > 0:
            work = float(queue[0] @ costs)
            part = min(1.0, left / work)
            joining[1:] += part * queue[0][:-1] * s[1:] / s[:-1]
            left -= part * work
            queue[0] = (1 - part) * queue[0]
            if part == 1.0:
                queue.popleft()
        queue.append(joining)
    total = np.sum(queue, axis=0)
    return float(total.sum()), float(total @ costs)


def test_moving_parcels_by_hand_gives_the_same() -> None:
    expected = at(trapped(), 3000.0, trapped().present), at(trapped(), 3000.0, trapped().gap_s)
    coarse, fine = (np.array(parcels(TURNS, COST, table3(), 3000.0, step)) for step in (1.0, 0.5))
    extrapolated = 2 * fine - coarse
    assert tuple(fine) == pytest.approx(expected, rel=0.01)
    assert tuple(extrapolated) == pytest.approx(expected, rel=0.002)


def queue_of_requests(arrivals: SessionArrivals, costs: Vector, until_s: float) -> Vector:
    """Completion times of whole sessions in a FIFO queue, request by request."""
    waiting: deque[tuple[float, int, int]] = deque()
    coming = deque(zip(arrivals.arrival_us, arrivals.turns, strict=True))
    now, done = 0.0, []
    while now < until_s and (waiting or coming):
        if not waiting:
            now = max(now, coming[0][0] / 1e6)
        while coming and coming[0][0] / 1e6 <= now:
            at_us, turns = coming.popleft()
            waiting.append((at_us / 1e6, 1, turns))
        _, turn, turns = waiting.popleft()
        now += costs[turn - 1]
        while coming and coming[0][0] / 1e6 <= now:
            at_us, others = coming.popleft()
            waiting.append((at_us / 1e6, 1, others))
        if turn == turns:
            done.append(now)
        else:
            waiting.append((now, turn + 1, turns))
    return np.array([time for time in done if time < until_s])


def seed_arrivals(workload: Workload, rate: float, seed: int) -> SessionArrivals:
    arm = Arm("BURST", Burst(200, 1200, 60))
    design = Design(8700.0, workload, (1.65,), (arm,), (), Seeds((seed,), "literal"))
    plan = make_plan(plan_key("", 0, "", seed), design, arm, rate)
    rows = plan.arrivals()
    return SessionArrivals(tuple(t for t, _, _ in rows), tuple(plan.session(o, i).turns for _, o, i in rows))


@pytest.mark.parametrize(("workload", "load"), [(STANDARD_WORKLOAD, 1.35), (MIRROR_WORKLOAD, 1.65)])
def test_a_runs_own_sessions_against_the_discrete_queue(workload: Workload, load: float) -> None:
    costs = CELL.turn_costs(workload)
    for seed in range(2):
        arrivals = seed_arrivals(workload, load * LAMBDA_REF, seed)
        orbit = fluid_orbit(workload.turns, costs, Scenario(Start(0.0), arrivals), 8700.0)
        done = queue_of_requests(arrivals, costs, 8700.0)
        for time in (500.0, 1500.0, 3000.0, 6600.0, 8699.0):
            completed = at(orbit, time, orbit.completed)
            print(workload.turns, seed, time, completed, int((done <= time).sum()))
            # A session's mass completes while its last turn is served, the session at the end of it.
            assert -1e-6 <= completed - (done <= time).sum() <= 1 + 1e-6
        np.testing.assert_allclose(orbit.present + orbit.completed, orbit.entered, atol=1e-8)
        assert orbit.entered[-1] == len(arrivals.turns)


def test_sessions_one_by_one() -> None:
    """Alone, a session is served without a wait, and the queue empties."""
    law, costs = FixedTurns(3), np.array([1.0, 2.0, 3.0])
    arrivals = SessionArrivals((1_000_000, 21_500_000, 41_000_000), (3, 1, 2))
    orbit = fluid_orbit(law, costs, Scenario(Start(0.0), arrivals), 60.0, 5.0)
    assert orbit.emptied_at(1.5) == pytest.approx(7.0)
    assert orbit.emptied_at(21.6) == pytest.approx(22.5)
    assert orbit.emptied_at(41.1) == pytest.approx(44.0)
    assert orbit.completed[-1] == pytest.approx(3.0)
    assert orbit.served[-1] == pytest.approx([3.0, 2.0, 1.0])


def test_point_masses_and_spread_pulses_agree_in_the_limit() -> None:
    found = []
    for spread in (0.0, 1e-3):
        arrivals = RatedArrivals(PiecewiseConstant((0.05,)), (Pulse(50.0, 100.0, spread), Pulse(5.0, 100.0, spread)))
        orbit = fluid_orbit(TURNS, COST, Scenario(Start(0.0, (1.0,)), arrivals), 900.0)
        conserved(orbit, TURNS, COST)
        found.append((at(orbit, 800.0, orbit.present), at(orbit, 800.0, orbit.gap_s)))
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_mirror_driven_by_seeds() -> None:
    """The paper's seeds gave 0.49-0.60 lambda_ref in [6600, 8700) s; these
    are other plans, so only the lull below capacity is asserted.
    """
    capacity = mirror_costs().lambda_miss(MIRROR_WORKLOAD)
    costs, start = mirror_costs().turn_costs(MIRROR_WORKLOAD), stationary_start(MIRROR_WORKLOAD.turns, 1200.0, 10.0)
    found = []
    for seed in range(10):
        arrivals = seed_arrivals(MIRROR_WORKLOAD, 1.65 * LAMBDA_REF, seed)
        orbit = fluid_orbit(MIRROR_WORKLOAD.turns, costs, Scenario(start, arrivals), 8700.0)
        found.append(window_readings(orbit, MIRROR_WORKLOAD, 6600.0, 8700.0)["completions_per_s"])
    ratios = np.array(found) / LAMBDA_REF
    print("MIRROR, completions over lambda_ref:", ratios.round(3), ratios.mean())
    assert ratios.min() > 0.4 and ratios.max() < 0.8 and 0.5 < ratios.mean() < 0.65
    assert max(found) < capacity


# --- readings ----------------------------------------------------------------


def test_readings_of_the_trap_near_the_theory() -> None:
    survival = np.array(survivals(TURNS))
    rate = 1.65 * LAMBDA_REF
    root = lotka_root(rate * survival * COST)
    orbit = fluid_orbit(TURNS, COST, table3(), 60000.0, 4.0)
    readings = window_readings(orbit, STANDARD_WORKLOAD, 50000.0, 60000.0)
    assert readings["mean_prompt_tokens"] == pytest.approx(8606, rel=0.002)
    assert readings["sojourn_slope"] == pytest.approx(1 - 1 / root, rel=0.01)
    assert readings["completions_per_s"] / LAMBDA_REF == pytest.approx(1.23, abs=0.02)
    assert readings["arrivals_per_s"] == pytest.approx(rate)
    assert readings["backlog_slope_per_s"] == pytest.approx(rate - readings["completions_per_s"], rel=0.01)
    middle = at(orbit, 55000.0, orbit.present)
    assert readings["outstanding"] == pytest.approx(middle, rel=0.01)
    # A turn completing at t' joined at t with t + V(t) = t'.
    joined = np.interp(55000.0, orbit.time_s, orbit.joined_at_s)
    assert joined + at(orbit, float(joined), orbit.gap_s) == pytest.approx(55000.0, abs=1e-3)


def test_readings_where_nothing_happens() -> None:
    orbit = fluid_orbit(FixedTurns(1), np.ones(1), constant(0.0, Start(0.0)), 100.0)
    readings = window_readings(orbit, Workload(FixedTurns(1), 10, 1, 1, 0.0), 0.0, 100.0)
    undefined = {name for name, value in readings.items() if math.isnan(value)}
    assert undefined == {"mean_prompt_tokens", "sojourn_s", "sojourn_slope"}
    assert all(value == 0 for name, value in readings.items() if name not in undefined)


# --- bad input ---------------------------------------------------------------

GOOD = constant(0.1, Start(0.0))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: PiecewiseConstant((1.0, 2.0)), "one value more"),
        (lambda: PiecewiseConstant((1.0, -2.0), (1.0,)), "not negative"),
        (lambda: PiecewiseConstant((1.0, math.nan), (1.0,)), "finite"),
        (lambda: PiecewiseConstant((1.0, 2.0, 1.0), (2.0, 2.0)), "ascend"),
        (lambda: PiecewiseConstant((1.0, 2.0), (math.inf,)), "finite"),
        (lambda: Pulse(-1.0, 0.0), "negative"),
        (lambda: Pulse(1.0, 0.0, -1.0), "negative"),
        (lambda: Pulse(1.0, math.inf), "finite"),
        (lambda: SessionArrivals((1, 2), (1,)), "turn counts"),
        (lambda: SessionArrivals((2, 1), (1, 1)), "ascend"),
        (lambda: SessionArrivals((1, 2), (1, 0)), "at least one turn"),
        (lambda: Start(math.nan), "finite"),
        (lambda: Start(0.0, (1.0, -1.0)), "negative"),
        (lambda: replace(GOOD, speed=PiecewiseConstant((0.0,))), "positive"),
        (lambda: fluid_orbit(TURNS, COST[:-1], GOOD, 10.0), "shape"),
        (lambda: fluid_orbit(TURNS, -COST, GOOD, 10.0), "positive"),
        (lambda: fluid_orbit(TURNS, COST, GOOD, 0.0), "after the start"),
        (lambda: fluid_orbit(TURNS, COST, GOOD, math.inf), "finite"),
        (lambda: fluid_orbit(TURNS, COST, GOOD, 10.0, 0.0), "step"),
        (lambda: fluid_orbit(TURNS, COST, GOOD, 1e9), "steps"),
        (lambda: fluid_orbit(FixedTurns(1), np.ones(1), constant(0.1, Start(0.0, (1.0, 1.0))), 9.0), "pending"),
        (
            lambda: fluid_orbit(FixedTurns(1), np.ones(1), Scenario(Start(0.0), SessionArrivals((1,), (2,))), 9.0),
            "turns",
        ),
        (lambda: window_readings(trapped(), STANDARD_WORKLOAD, 0.0, 100.0), "window"),
        (lambda: window_readings(trapped(), STANDARD_WORKLOAD, 2000.0, 2000.0), "empty"),
        (lambda: window_readings(trapped(), MIRROR_WORKLOAD, 2000.0, 2100.0), "prompts"),
        (lambda: trapped().lowest_present(1e6), "ends at"),
    ],
)
def test_bad_input_is_told(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
