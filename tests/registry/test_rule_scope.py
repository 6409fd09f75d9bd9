"""What a rule may name beside its own run: releases, other arms, predictions."""

from __future__ import annotations

import math

import pytest

from registry.design import ReleaseWindow, RunId, Window
from registry.draft import Draft, load_draft
from registry.errors import DraftError, ManyErrors, TrapError
from registry.rule import Known, decide_run
from tests.support import WORKLOAD

RULE = f"""schema: trap-draft-1
id: paired
title: A rule with everything beside it
question: What may a rule name?
cell: sglang-300k
calibration: all-miss-small
design:
  horizon_s: 300
{WORKLOAD}
  rates: [1.35, 1.65]
  seeds: {{values: [0, 1], binding: beacon}}
  arms:
    RESCUE:
      burst: {{sessions: 10, start_s: 50, spread_s: 10}}
      gate: {{cap: 4, engage_s: 80, release_after_s: 10}}
    NOBURST: {{}}
    ALLMISS: {{population: 8, caching: false}}
  windows:
    judged: {{start_s: 60, end_s: 300}}
    after_release: {{from_release_of: RESCUE, end_s: 300}}
rule:
  runs:
    RESCUE:
      as_without: >-
        run.after_release.followups_finished >= 1.0
        && run.after_release.hits >= NOBURST.after_release.hits - 5.0
      slower: run.judged.uncached_prefill_tokens_per_s < ALLMISS.judged.uncached_prefill_tokens_per_s
    NOBURST:
      as_predicted: abs(run.judged.outstanding - predicted.how_many) <= 0.5 * predicted.how_many
    ALLMISS:
      missed: run.judged.reuse_fraction == 0.0
  rate: all(RESCUE.as_without) && all(RESCUE.slower) && any(NOBURST.as_predicted) && all(ALLMISS.missed)
predictors:
  - name: how-many
    kind: model-f-fluid
    predictor_version: 1
    costs: step-costs
    all_miss_from_s: 0
    sessions_present: 3
    source: a test
    arm: NOBURST
    window: judged
    reading: outstanding
    relative_tolerance: 0.5
blindness: none
caveats: []
deviations: []
amendments: []
"""


def loaded(text: str = RULE) -> Draft:
    return load_draft(text.encode(), "paired.yaml")


def edited(old: str, new: str) -> str:
    assert old in RULE, old
    return RULE.replace(old, new, 1)


def findings(text: str) -> list[TrapError]:
    with pytest.raises(TrapError) as caught:
        loaded(text)
    return list(caught.value.errors) if isinstance(caught.value, ManyErrors) else [caught.value]


def test_a_rule_names_windows_from_a_release_other_arms_and_predictions() -> None:
    draft = loaded()
    assert draft.design.window("after_release") == ReleaseWindow("after_release", "RESCUE", 300.0)
    assert draft.design.releasing == ("RESCUE",)
    rules = {rule.name: rule for rule in draft.rule.runs}
    assert rules["as_without"].readings == (("after_release", "followups_finished"), ("after_release", "hits"))
    assert rules["as_without"].reading_of["NOBURST.after_release.hits"] == "hits"
    assert rules["as_predicted"].predicted == ("how_many",)
    assert rules["as_predicted"].reading_of["predicted.how_many"] == "outstanding"


def test_a_closed_population_runs_once_a_seed_beside_open_arms() -> None:
    design = loaded().design
    closed = [run for run in design.run_ids() if run.arm == "ALLMISS"]
    assert closed == [RunId("ALLMISS", None, 0), RunId("ALLMISS", None, 1)]
    assert len(design.run_ids()) == 2 * 2 * 2 + 2
    assert design.run_of("ALLMISS", 1.65, 1) == RunId("ALLMISS", None, 1)
    assert design.run_of("NOBURST", 1.65, 1) == RunId("NOBURST", 1.65, 1)
    assert design.judged_rates == (1.35, 1.65)


@pytest.mark.parametrize(
    ("release_s", "window"),
    [(120.5, (120.5, 300.0)), (299.0, (299.0, 300.0)), (300.0, (300.0, 300.0)), (math.nan, (300.0, 300.0))],
)
def test_a_window_opens_at_the_release_and_is_empty_without_one(release_s: float, window: tuple[float, float]) -> None:
    opened = ReleaseWindow("after_release", "RESCUE", 300.0).opened(release_s)
    assert opened == Window("after_release", *window)


def test_what_stands_beside_a_run_is_needed_to_decide() -> None:
    rules = {rule.name: rule for rule in loaded().rule.runs}
    own = {"after_release": {"followups_finished": 9.0, "hits": 9.0}}
    beside = Known({"NOBURST": {"after_release": {"hits": 10.0}}})
    assert decide_run(rules["as_without"], own, {}, beside).value is True
    absent = decide_run(rules["as_without"], own, {})
    assert (absent.value, absent.reason) == (None, "NOBURST.after_release.hits is absent")
    unknown = decide_run(rules["as_without"], own, {}, Known({"NOBURST": {"after_release": {"hits": math.nan}}}))
    assert (unknown.value, unknown.reason) == (None, "NOBURST.after_release.hits is nan")
    never = {"after_release": {"followups_finished": 0.0, "hits": 0.0}}
    assert decide_run(rules["as_without"], never, {}, beside).value is False
    own = {"judged": {"outstanding": 6.0}}
    assert decide_run(rules["as_predicted"], own, {}, Known(predicted={"how_many": 5.0})).value is True
    assert decide_run(rules["as_predicted"], own, {}, Known(predicted={"how_many": 2.0})).value is False
    assert decide_run(rules["as_predicted"], own, {}).reason == "predicted.how_many is absent"


WINDOW = "    after_release: {from_release_of: RESCUE, end_s: 300}"
BAD = [
    (WINDOW, "    after_release: {end_s: 300}", "does not say where it starts", "design.windows.after_release"),
    (WINDOW, WINDOW.replace("end_s", "start_s: 1, end_s"), "not at both", "design.windows.after_release"),
    (WINDOW, WINDOW.replace("RESCUE", "OTHER"), "unknown arm", "design.windows.after_release.from_release_of"),
    (WINDOW, WINDOW.replace("RESCUE", "NOBURST"), "nothing is ever released", "windows.after_release.from_release_of"),
    ("release_after_s: 10", "release_after_s: null", "nothing is ever released", "after_release.from_release_of"),
    (WINDOW, WINDOW.replace("300", "301"), "does not lie inside the run", "design.windows.after_release.end_s"),
    (WINDOW, WINDOW.replace("300", "80"), "does not lie inside the run", "design.windows.after_release.end_s"),
    ("    window: judged", "    window: after_release", "known only when its run is over", "predictors[0].window"),
    ("NOBURST.after_release.hits", "OTHER.after_release.hits", "unknown name in a rule", "rule.runs.RESCUE.as_without"),
    ("NOBURST.after_release.hits", "RESCUE.after_release.hits", "unknown name in a rule", "RESCUE.as_without"),
    ("NOBURST.after_release.hits", "NOBURST.after.hits", "unknown window in a rule", "rule.runs.RESCUE.as_without"),
    ("NOBURST.after_release.hits", "NOBURST.judged.all", "unknown reading in a rule", "rule.runs.RESCUE.as_without"),
    ("ALLMISS.judged.un", "ALLMISS.after_release.un", "unknown window in a rule", "rule.runs.RESCUE.slower"),
    ("run.judged.reuse", "run.after_release.reuse", "unknown window in a rule", "rule.runs.ALLMISS.missed"),
    ("fraction == 0.0", "fraction == NOBURST.judged.reuse_fraction", "unknown name", "rule.runs.ALLMISS.missed"),
    ("predicted.how_many)", "predicted.how_few)", "no such prediction", "rule.runs.NOBURST.as_predicted"),
    ("predicted.how_many)", "predicted.how-many)", "no such prediction", "rule.runs.NOBURST.as_predicted"),
    ("    arm: NOBURST", "    arm: NOBURST\n    rate: 1.35", "no such prediction", "rule.runs.NOBURST.as_predicted"),
    ("ALLMISS.judged.uncached_prefill_tokens_per_s", "predicted.how_many", "no such prediction", "RESCUE.slower"),
    (
        "NOBURST.after_release.hits - 5.0",
        "0.0 * NOBURST.after_release.hits - 5.0 || run.after_release.followups_finished >= 0.0",
        "the rule is constant: it is always true",
        "rule.runs.RESCUE.as_without",
    ),
]


@pytest.mark.parametrize(("old", "new", "words", "field"), BAD, ids=[f"{b[2]}-{i}" for i, b in enumerate(BAD)])
def test_a_bad_scope_is_refused_with_its_field(old: str, new: str, words: str, field: str) -> None:
    (error,) = [e for e in findings(edited(old, new)) if words in e.what]
    assert str(error.where).endswith(field)
    assert isinstance(error, TrapError) and error.remedy


def test_a_stated_value_is_written_in_the_rule_not_named_as_predicted() -> None:
    kind = RULE[RULE.index("    kind: model-f-fluid") : RULE.index("    source: a test")]
    assert any("no such prediction" in e.what for e in findings(edited(kind, "    kind: stated\n    value: 3\n")))


def test_a_closed_population_has_neither_rate_nor_rates_values() -> None:
    kind = RULE[RULE.index("    kind: model-f-fluid") : RULE.index("    window: judged\n    reading")]
    stated = (
        "    kind: stated\n    value: 3\n    times: lambda_per_s\n    source: x\n    arm: ALLMISS\n    rate: 1.35\n"
    )
    found = {e.what for e in findings(edited(kind, stated)) if isinstance(e, DraftError)}
    assert {"a closed population has no rate", "a closed population has no times"} <= found
