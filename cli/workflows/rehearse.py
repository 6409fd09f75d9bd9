"""Rehearsals: a draft's runs on the simulator over literal seeds.

They say how often the rule would pass, and how its readings are distributed.
Simulated, exploratory, and never evidence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from artifacts.records import RECORDS_VERSION
from cli.workflows.reporter import Reporter
from registry.beacon import BeaconPromise
from registry.bundle import bundled
from registry.design import Design, RunId, Seeds
from registry.draft import SIMULATOR, Draft, load_draft
from registry.draft_workload import ScriptsFor, no_scripts
from registry.plan import make_plan, plan_key
from registry.plan_source import to_be_quoted
from registry.reading_catalogue import READINGS_VERSION
from registry.registration import Calibration, Registration, freeze, read_registration
from registry.rule import decide_rate
from runners.local_queue import run_all
from runners.run_one import check_can_run
from runners.simulated.run import simulate
from verifier.calibration_checks import quote
from verifier.golden import golden_digest
from verifier.predictors import evaluate
from verifier.readings import RunFrames
from verifier.releases import first_release_s
from verifier.run_report import RunReport, frames_of, read
from verifier.verdict import Readings, run_verdicts

FIRST_SEED = 1000
SEEDS = 20
_MAX_GROUPS = 5000


@dataclass(frozen=True)
class Rehearsal:
    """Readings and verdicts of every rehearsed run, and how often each rate
    would pass over groups of as many seeds as the design has.
    """

    registration: Registration
    seeds: tuple[int, ...]
    readings: dict[RunId, Readings]
    verdicts: dict[RunId, dict[str, bool | None]]
    pass_share: dict[float | None, float]

    def counts(self, rate: float | None, arm: str) -> dict[str, tuple[int, int]]:
        """Verdict name to (true, decided) over the seeds."""
        found: dict[str, list[bool]] = {}
        for run, verdicts in self.verdicts.items():
            if run.arm == arm and run.rate in (rate, None):
                for name, value in verdicts.items():
                    found.setdefault(name, []).extend([value] if value is not None else [])
        return {name: (sum(values), len(values)) for name, values in found.items()}

    def frozen(self) -> dict[str, object]:
        """What a registration keeps of its rehearsal."""
        design = self.registration.draft.design
        return {
            "engine": "simulated",
            "seeds": list(self.seeds),
            "rates": [
                {
                    "rate": rate,
                    "pass_share": self.pass_share[rate],
                    "verdicts": {
                        f"{arm.name}.{name}": list(count)
                        for arm in design.arms
                        for name, count in self.counts(rate, arm.name).items()
                    },
                }
                for rate in design.judged_rates
            ],
        }


def provisional(draft: Draft, calibration: Calibration | None, beacon: BeaconPromise | None = None) -> bytes:
    """Frozen bytes of a draft as they would be, before it is registered; on the
    simulator, whatever it runs on then; with its session scripts.
    """
    source = {key: value for key, value in draft.source.items() if key != "runs_on"}
    frozen = freeze(
        replace(draft, source=source, runs_on=SIMULATOR),
        1,
        beacon=beacon or BeaconPromise("none", 0),
        calibration=calibration,
        rehearsal=None,
        readings={"version": READINGS_VERSION, "golden_sha256": golden_digest()},
        records_version=RECORDS_VERSION,
        claim="registered",
        supersedes=None,
        plan_source=to_be_quoted(draft.plan_from),
    )
    return bundled(frozen, draft.session_scripts.data if draft.session_scripts else None)


@lru_cache(maxsize=8)
def read_cached(data: bytes) -> Registration:
    """A registration from its frozen bytes, read once a process."""
    return read_registration(data, "rehearsal")


def rehearse_runs(order: tuple[bytes, tuple[RunId, ...]]) -> dict[RunId, Readings]:
    """Literal-seed runs, simulated and read; runs in a worker process. Runs
    that are read by each other's releases come in one order.
    """
    data, runs = order
    registration = read_cached(data)
    releasing = registration.draft.design.releasing
    frames = {run: simulated(registration, run) for run in runs}
    releases = {run.arm: first_release_s(frames[run].gate) for run in runs if run.arm in releasing}
    return {run: read(frames[run], registration, run, releases) for run in runs}


def simulated(registration: Registration, run: RunId) -> RunFrames:
    """The records of one literal-seed run, simulated."""
    return frames_of(simulated_tables(registration, run))


def simulated_tables(registration: Registration, run: RunId) -> dict[str, pa.Table]:
    """The record tables of one literal-seed run, simulated."""
    design = registration.draft.design
    key = plan_key("", 0, "", run.seed)
    plan = make_plan(key, design, design.arm(run.arm), registration.lambda_per_s(run), run.rate)
    return simulate(plan, design.arm(run.arm), registration.cell_of(run))


def _orders(design: Design, seeds: tuple[int, ...]) -> list[tuple[RunId, ...]]:
    """The runs to rehearse, in groups that are simulated together."""
    runs = dict.fromkeys(RunId(run.arm, run.rate, seed) for run in design.run_ids() for seed in seeds)
    if not design.releasing:
        return [(run,) for run in runs]
    groups: dict[tuple[float | None, int], list[RunId]] = {}
    for run in runs:
        groups.setdefault((run.rate, run.seed), []).append(run)
    return [tuple(group) for group in groups.values()]


def rehearse(
    draft: Draft, calibration: Calibration | None, reporter: Reporter, seeds: int = SEEDS, first_seed: int = FIRST_SEED
) -> Rehearsal:
    """Rehearse a draft over `seeds` literal seeds, in parallel over cores."""
    data = provisional(draft, calibration)
    registration = read_cached(data)
    check_can_run(registration)
    numbers = tuple(range(first_seed, first_seed + seeds))
    orders = _orders(draft.design, numbers)
    readings: dict[RunId, Readings] = {}
    for _, result in run_all(rehearse_runs, [(data, runs) for runs in orders]):
        if isinstance(result, Exception):
            raise result
        readings |= result
        reporter.step(f"rehearsing {draft.id} (simulated)", len(readings), sum(map(len, orders)))
    ordered = {run: readings[run] for runs in orders for run in runs}
    used = {name for rule in (*draft.rule.runs, *draft.rule.reported) for name in rule.predicted}
    names = [predictor.name for predictor in draft.predictors if predictor.rule_name in used]
    predictions = evaluate(on_literal_seeds(registration, numbers, names), None, ordered.__getitem__)
    verdicts = {
        run: {v.name: v.decision.value for v in run_verdicts(registration, run, ordered, predictions)}
        for run in ordered
    }
    shares = {rate: _pass_share(registration, rate, verdicts, numbers) for rate in draft.design.judged_rates}
    return Rehearsal(registration, numbers, ordered, verdicts, shares)


def on_literal_seeds(registration: Registration, seeds: tuple[int, ...], predictors: Iterable[str]) -> Registration:
    """The registration as if it had these literal seeds, and only the named
    predictors.
    """
    draft = registration.draft
    chosen = tuple(p for p in draft.predictors if p.name in set(predictors))
    design = replace(draft.design, seeds=Seeds(seeds, "literal"))
    return replace(registration, draft=replace(draft, design=design, predictors=chosen))


def _pass_share(
    registration: Registration,
    rate: float | None,
    verdicts: dict[RunId, dict[str, bool | None]],
    seeds: tuple[int, ...],
) -> float:
    """Share of seed groups on which the rate rule is true."""
    rule, size = registration.draft.rule.rate, min(len(registration.draft.design.seeds.values), len(seeds))
    if math.comb(len(seeds), size) <= _MAX_GROUPS:
        groups = list(itertools.combinations(seeds, size))
    else:
        groups = [tuple((seeds * 2)[i : i + size]) for i in range(len(seeds))]
    passed = 0
    for group in groups:
        lists = {name: [_verdict(registration, verdicts, name, rate, seed) for seed in group] for name in rule.names}
        passed += decide_rate(rule, lists).value is True
    return passed / len(groups)


def _verdict(
    registration: Registration,
    verdicts: dict[RunId, dict[str, bool | None]],
    dotted: str,
    rate: float | None,
    seed: int,
) -> bool:
    arm, name = dotted.split(".")
    return verdicts[registration.draft.design.run_of(arm, rate, seed)][name] is True


def rehearsed_calibration(
    text: bytes, name: str, draft: Draft, reporter: Reporter, seeds: int = 3, scripts_for: ScriptsFor = no_scripts
) -> Calibration:
    """The calibration of a draft from simulated literal-seed runs, for
    rehearsing before anything is registered.
    """
    source = load_draft(text, name, {draft.cell.name: draft.cell}, scripts_for)
    result = rehearse(source, None, reporter, seeds=seeds)
    reports = [
        RunReport(run, "complete", run_sha256="", readings=readings) for run, readings in result.readings.items()
    ]
    return quote(result.registration, reports)
