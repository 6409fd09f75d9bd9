"""Rule files: the shipped ones load, and every mistake is named with its place."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from registry.draft import SIMULATOR, load_draft
from registry.errors import DraftError, ManyErrors, TrapError
from registry.schema_check import schema
from tests.made_traces import made_scripts

ROOT = Path(__file__).parents[2]

RULES = Path(__file__).parents[2] / "rules"
E2 = (RULES / "e2.yaml").read_text()
ALL_MISS = (RULES / "all-miss-sglang-300k.yaml").read_text()
DRAFT = load_draft(E2.encode(), "e2.yaml")
SOURCE = DRAFT.source


def findings(text: str) -> list[TrapError]:
    with pytest.raises(TrapError) as caught:
        load_draft(text.encode(), "e2.yaml")
    return list(caught.value.errors) if isinstance(caught.value, ManyErrors) else [caught.value]


def edited(old: str, new: str, text: str = E2) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


@pytest.mark.parametrize("path", sorted(RULES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_shipped_rule_file_loads(path: Path) -> None:
    draft = load_draft(path.read_bytes(), path.name, scripts_for=made_scripts)
    assert draft.id == path.stem
    assert re.fullmatch("[0-9a-f]{64}", draft.sha256)


def test_e2_says_what_its_file_says() -> None:
    draft = load_draft(E2.encode(), "e2.yaml")
    assert [arm.name for arm in draft.design.arms] == ["BURST", "NOBURST", "CAPPED"]
    assert draft.design.rates == (1.35, 1.65)
    assert draft.design.arm("BURST").burst is not None and draft.design.arm("NOBURST").burst is None
    assert draft.design.arm("CAPPED").gate is not None and draft.design.arm("CAPPED").caching
    assert len(draft.design.run_ids()) == 18
    assert draft.judged_window == "judged"
    assert [rule.name for rule in draft.rule.reported] == ["zero_hits"]
    assert draft.predictors[2].times == "lambda_ref_per_s" and draft.predictors[0].times is None


def test_a_calibration_has_closed_runs_and_a_measure() -> None:
    draft = load_draft(ALL_MISS.encode(), "all-miss.yaml")
    assert [run.path for run in draft.design.run_ids()] == [f"ALLMISS/closed/{seed}" for seed in (0, 1, 2)]
    assert [measure.name for measure in draft.measures] == ["all_miss_prefill_tokens_per_s"]
    assert draft.calibration is None


BAD = [
    # edit, words of the finding, field
    ("id: e2\n", "", "the field id is missing", None),
    ("blindness: >-", "blind: >-", "the field blindness is missing", None),
    ("  horizon_s: 8700\n", "", "the field horizon_s is missing", "design"),
    ("horizon_s: 8700", "horizon: 8700", "unknown field horizon", "design.horizon"),
    ("id: e2", "id: e2\nextra: 1", "unknown field extra", "extra"),
    ("schema: trap-draft-1", "schema: trap-draft-2", "not the expected value", "schema"),
    ("id: e2", "id: E2", "the text has the wrong form", "id"),
    ("id: e2", 'id: "e2\\n"', "the text has the wrong form", "id"),
    ("title: A burst", 'title: "A\\nB" #', "the text has the wrong form", "title"),
    ("title: A burst", 'title: "" #', "the text is empty", "title"),
    ("title: A burst", "title: " + "x" * 201, "the text is too long", "title"),
    ("cell: sglang-300k", "cell: sglang-301k", "unknown cell", "cell"),
    ("horizon_s: 8700", "horizon_s: 0", "the number is too small", "design.horizon_s"),
    ("horizon_s: 8700", "horizon_s: 2e6", "the number is too large", "design.horizon_s"),
    ("horizon_s: 8700", "horizon_s: '8700'", "a value of the wrong kind", "design.horizon_s"),
    ("horizon_s: 8700", "horizon_s: true", "a value of the wrong kind", "design.horizon_s"),
    ("horizon_s: 8700", "horizon_s: 1:30:00", "ambiguous", None),
    ("horizon_s: 8700", "horizon_s: .nan", "ambiguous", None),
    ("mean_turns: 15", "mean_turns: 15.0", "a value of the wrong kind", "design.workload.turns.mean_turns"),
    ("mean_turns: 15", "mean_turns: 0", "the number is too small", "design.workload.turns.mean_turns"),
    ("mean_tool_s: 5", "mean_tool_s: -1", "the number is too small", "design.workload.mean_tool_s"),
    ("mean_tool_s: 5", "mean_tool_s: 1e300", "the number is too large", "design.workload.mean_tool_s"),
    ("output_tokens: 100", "output_tokens: 100.5", "a value of the wrong kind", "design.workload.output_tokens"),
    ("rates: [1.35, 1.65]", "rates: [-1.35, 1.65]", "the number is too small", "design.rates[0]"),
    ("rates: [1.35, 1.65]", "rates: [1.35, 0]", "the number is too small", "design.rates[1]"),
    ("rates: [1.35, 1.65]", "rates: [1.35, 1.65, 1.35]", "an entry is listed twice", "design.rates"),
    ("rates: [1.35, 1.65]", "rates: [1.35, 1.65, 1, 1.0]", "an entry is listed twice", "design.rates"),
    ("rates: [1.35, 1.65]", "rates: 1.35", "a value of the wrong kind", "design.rates"),
    ("values: [0, 1, 2]", "values: [0, 1, 1]", "an entry is listed twice", "design.seeds.values"),
    ("values: [0, 1, 2]", "values: [0, 1, 2.0]", "a value of the wrong kind", "design.seeds.values[2]"),
    ("values: [0, 1, 2]", "values: [0, -1]", "the number is too small", "design.seeds.values[1]"),
    ("values: [0, 1, 2]", f"values: [{2**53}]", "the number is too large", "design.seeds.values[0]"),
    ("values: [0, 1, 2]", "values: [true]", "a value of the wrong kind", "design.seeds.values[0]"),
    ("values: [0, 1, 2]", "values: []", "the list is too short", "design.seeds.values"),
    ("binding: beacon", "binding: drand", "not one of the allowed values", "design.seeds.binding"),
    ("NOBURST: {}", "noburst: {}", "the text has the wrong form", "design.arms"),
    ("NOBURST: {}", "NOBURST:", "a value of the wrong kind", "design.arms.NOBURST"),
    ("NOBURST: {}", "NOBURST: {caching: 1}", "a value of the wrong kind", "design.arms.NOBURST.caching"),
    ("sessions: 200", "sessions: 0", "the number is too small", "design.arms.BURST.burst.sessions"),
    ("spread_s: 60", "spread_s: 0", "the number is too small", "design.arms.BURST.burst.spread_s"),
    ("spread_s: 60", "spread_s: 1e200", "the number is too large", "design.arms.BURST.burst.spread_s"),
    ("start_s: 1200, s", "start_s: 8700, s", "the burst starts after the run", "design.arms.BURST.burst.start_s"),
    ("engage_s: 0", "engage_s: 8700", "the gate starts after the run", "design.arms.CAPPED.gate.engage_s"),
    ("cap: 20", "cap: 0", "the number is too small", "design.arms.CAPPED.gate.cap"),
    (
        "NOBURST: {}",
        "NOBURST: {shed: {start_s: 8700, duration_s: 1}}",
        "the shed starts after the run",
        "design.arms.NOBURST.shed.start_s",
    ),
    ("NOBURST: {}", "NOBURST: {cut: {at_s: 10, to_rate: 0}}", "too small", "design.arms.NOBURST.cut.to_rate"),
    (
        "NOBURST: {}",
        "NOBURST: {tool_slowdown: {start_s: 1, duration_s: 1, extra_s: 0}}",
        "too small",
        "design.arms.NOBURST.tool_slowdown.extra_s",
    ),
    ("cap: 20, ", "", "either cap or pool_share", "design.arms.CAPPED.gate"),
    ("cap: 20, ", "cap: 20, pool_share: 0.9, ", "either cap or pool_share", "design.arms.CAPPED.gate"),
    ("cap: 20, ", "pool_share: 1.5, ", "the number is too large", "design.arms.CAPPED.gate.pool_share"),
    (
        "cap: 20, ",
        "pool_share: 0.9, adaptation: {interval_s: 10, low_hit: 0.5, decrease: 0.5, increase: 1, least_cap: 4}, ",
        "only a cap on sessions adapts",
        "design.arms.CAPPED.gate.adaptation",
    ),
    (
        "cap: 20, ",
        "cap: 20, adaptation: {interval_s: 10, low_hit: 0.5, decrease: 0.5, increase: 1, least_cap: 21}, ",
        "above the first cap",
        "design.arms.CAPPED.gate.adaptation.least_cap",
    ),
    ("NOBURST: {}", "NOBURST: {engine: {order: random}}", "not one of the allowed", "design.arms.NOBURST.engine.order"),
    (
        "NOBURST: {}",
        "NOBURST: {engine: {pin_s: 9, eviction: longest-wait}}",
        "pins go with eviction lru",
        "design.arms.NOBURST.engine.pin_s",
    ),
    (
        "NOBURST: {}",
        "NOBURST: {caching: false, engine: {pin_s: 9}}",
        "no cache to evict from",
        "design.arms.NOBURST.engine",
    ),
    ("NOBURST: {}", "NOBURST: {step_cap: 0}", "the number is too small", "design.arms.NOBURST.step_cap"),
    ("tool_output_tokens: 550", "tool_output_tokens: 9999", "too small for one turn", "design.workload"),
    ("release_after_s: null", "release_after_s: no", "ambiguous", None),
    ("end_s: 8700}", "end_s: 8700.5}", "the window does not lie inside the run", "design.windows.judged"),
    ("start_s: 5700", "start_s: 8700", "the window does not lie inside the run", "design.windows.judged"),
    ("start_s: 5700", "start_s: -1", "the number is too small", "design.windows.judged.start_s"),
    ("    BURST:\n", "    BURST:\n      population: 3\n", "takes no burst", "design.arms.BURST.burst"),
    ("rates: [1.35, 1.65]", "rates: []", "an arm with open arrivals needs rates", "design.arms.BURST"),
    ("calibration: all-miss-sglang-300k\n", "", "no calibration is named", None),
    ("calibration: all-miss-sglang-300k", "calibration: e2", "a registration cannot calibrate itself", "calibration"),
    ("    NOBURST:\n      good", "    NONE:\n      good", "an arm that the design lacks", "rule.runs.NONE"),
    ("  reported:\n    BURST:", "  reported:\n    NONE:", "an arm that the design lacks", "rule.reported.NONE"),
    ("followup_hit_fraction >= 0.9", "hit_fraction >= 0.9", "unknown reading in a rule", "rule.runs.NOBURST.good"),
    ("run.judged.f", "run.window.f", "unknown window in a rule", "rule.runs.NOBURST.good"),
    ("0.25 * (lambda_per_s", "0.25 * (lambda", "unknown name in a rule", "rule.runs.NOBURST.good"),
    ("0.25 * (lambda_per_s", "cap * (lambda_per_s", "unknown name in a rule", "rule.runs.NOBURST.good"),
    ("hit_fraction >= 0.9", "hit_fraction >= 1", "is no comparison", "rule.runs.NOBURST.good"),
    ("fraction == 0.0", "fraction >= 0.0", "the rule is constant: it is always true", "rule.reported.BURST.zero_hits"),
    ("fraction == 0.0", "fraction == 2.0", "the rule is constant: it is always false", "rule.reported.BURST.zero_hits"),
    ("      zero_hits: run", "      Zero-Hits: run", "the text has the wrong form", "rule.reported.BURST"),
    ("rate: count(BURST.t", "rate: count(OTHER.t", "unknown run verdict in the rate rule", "rule.rate"),
    ("rate: count(BURST.trapped)", "rate: count(BURST.zero_hits)", "unknown run verdict in the rate rule", "rule.rate"),
    (">= 2 && all(NOBURST.good) && all(CAPPED.recovered)", ">= 0", "the rate rule is constant", "rule.rate"),
    (">= 2 && all", ">= 4 && all", "the rate rule is constant: it is always false", "rule.rate"),
    ("rate: 1.35\n", "rate: 1.36\n", "unknown rate", "predictors[0].rate"),
    ("arm: BURST\n", "arm: BURSTS\n", "unknown arm", "predictors[0].arm"),
    ("window: judged\n", "window: judge\n", "unknown window", "predictors[0].window"),
    ("reading: mean_prompt_tokens", "reading: prompt", "unknown reading", "predictors[0].reading"),
    ("kind: stated", "kind: fitted", "not one of the allowed values", "predictors[0].kind"),
    ("times: lambda_ref_per_s", "times: lambda", "not one of the allowed values", "predictors[2].times"),
    ("tolerance: 0.03", "tolerance: 0", "the number is too small", "predictors[0].relative_tolerance"),
    ("value: 9324", "value: 1e999", "too large", None),
    ("deviations: []", "deviations: [1]", "a value of the wrong kind", "deviations[0]"),
    ("id: e2", "id: e2\nclaim: void", "not one of the allowed values", "claim"),
    ("id: e2", "id: e2\nid: e3", "the key stands twice", None),
]


@pytest.mark.parametrize(("old", "new", "words", "field"), BAD, ids=[f"{b[2]}-{b[3]}" for b in BAD])
def test_a_bad_edit_is_named_with_its_field_and_line(old: str, new: str, words: str, field: str | None) -> None:
    found = [error for error in findings(edited(old, new)) if words in error.what]
    assert found, [error.what for error in findings(edited(old, new))]
    error = found[0]
    assert re.match(r"e2\.yaml, line [0-9]+", str(error.where))
    if field is not None:
        assert str(error.where).endswith(f", field {field}")
    assert error.remedy
    error.diagnostics().encode()


@pytest.mark.parametrize(
    ("old", "new", "words", "field"),
    [
        ("      population: 32\n", "      population: 32\n      gate: {cap: 1, engage_s: 0, release_after_s: null}\n",
         "takes no gate", "design.arms.ALLMISS.gate"),
        ("reading: uncached", "reading: cached", "unknown reading", "measures.all_miss_prefill_tokens_per_s.reading"),
        ("arm: ALLMISS, w", "arm: OTHER, w", "unknown arm", "measures.all_miss_prefill_tokens_per_s.arm"),
        ("all_miss_prefill_tokens_per_s:", "speed:", "unknown field speed", "measures.speed"),
        ("== 0.0", "== lambda_per_s", "unknown name in a rule", "rule.runs.ALLMISS.every_turn_missed"),
        ("      population: 32\n", "", "needs rates", "design.arms.ALLMISS"),
    ],
)  # fmt: skip
def test_a_bad_calibration_is_named(old: str, new: str, words: str, field: str) -> None:
    found = [error for error in findings(edited(old, new, ALL_MISS)) if words in error.what]
    assert found and str(found[0].where).endswith(f", field {field}")


def test_the_line_is_that_of_the_field() -> None:
    line = E2.splitlines().index("  rates: [1.35, 1.65]") + 1
    (error,) = findings(edited("1.65]", "-1]"))
    assert error.where == f"e2.yaml, line {line}, field design.rates[1]"
    assert error.value == -1


def test_a_misspelt_field_gets_a_suggestion() -> None:
    unknown = [e for e in findings(edited("relative_tolerance", "relative_tolerence")) if "unknown" in e.what]
    assert unknown[0].remedy == "did you mean relative_tolerance?"


def test_a_misplaced_field_gets_the_allowed_ones() -> None:
    unknown = [e for e in findings(edited("NOBURST: {}", "NOBURST: {temperature: 3}")) if "unknown" in e.what]
    allowed = "burst, gate, population, caching, pool_tokens, shed, cut, tool_slowdown, step_cap, engine, horizon_s"
    assert unknown[0].remedy == f"allowed here: {allowed}"


def test_every_missing_field_is_named_once_with_its_meaning() -> None:
    found = findings(edited("  horizon_s: 8700\n", "", edited("id: e2\n", "", edited("title: A", "# A"))))
    assert sorted(error.what for error in found) == [f"the field {f} is missing" for f in ("horizon_s", "id", "title")]
    assert "Length of every run" in str(next(e for e in found if "horizon" in e.what).remedy)


def test_all_findings_are_shown_in_the_order_of_the_file() -> None:
    found = findings(edited("value: 9324", "value: x", edited("cap: 20", "cap: 0", edited("1.35,", "-1,"))))
    lines = [int(str(error.where).split(", line ")[1].split(",")[0]) for error in found]
    assert len(found) == 3 and lines == sorted(lines)


@pytest.mark.parametrize("text", ["- a\n", "hello\n", "12\n", "null\n"])
def test_a_file_that_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(DraftError, match="mapping"):
        load_draft(text.encode(), "x.yaml")


@given(st.integers(0, len(E2) - 1), st.integers(0, 30), st.text("0123456789.-:[]{}ab \n'", max_size=3))
@settings(max_examples=60, deadline=None)
def test_a_random_edit_gives_a_draft_or_a_refusal(start: int, length: int, put: str) -> None:
    try:
        assert load_draft((E2[:start] + put + E2[start + length :]).encode(), "e2.yaml").sha256
    except TrapError as error:
        error.diagnostics().encode()


# --- the schema --------------------------------------------------------------


def _nodes(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if path:
        yield path, node
    for name, child in node.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            yield from _nodes(node[keyword], f"{path}.{keyword}")


@pytest.mark.parametrize("name", ["draft", "study"])
def test_every_property_of_a_schema_is_described(name: str) -> None:
    nodes = dict(_nodes(schema(name)))
    assert len(nodes) > 5
    assert not [path for path, node in nodes.items() if len(node.get("description", "")) < 5]


@pytest.mark.parametrize("name", ["draft", "study"])
def test_every_mapping_of_a_schema_is_closed_and_every_field_bounded(name: str) -> None:
    nodes = {"": schema(name), **dict(_nodes(schema(name)))}
    for path, node in nodes.items():
        if node.get("type") == "object":
            assert "additionalProperties" in node, path
        if node.get("type") == "integer":
            assert {"minimum", "maximum"} <= set(node), path


# --- sameness ----------------------------------------------------------------


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _shuffled(value[key], rng) for key in keys}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


def _sha256(text: str | bytes) -> str:
    return load_draft(text if isinstance(text, bytes) else text.encode(), "x").sha256


def test_comments_line_ends_and_the_way_of_writing_do_not_make_another_draft() -> None:
    same = load_draft(E2.encode(), "x").sha256
    assert _sha256("# more\n" + E2.replace("\ndesign:", " # a comment\n\n\ndesign:")) == same
    assert _sha256(E2.replace("\n", "\r\n")) == same
    assert _sha256(edited("horizon_s: 8700", "horizon_s: 8700.0")) == same
    assert _sha256(edited("horizon_s: 8700", "horizon_s: 8.7e3")) == same
    assert _sha256(edited("cell: sglang-300k", "cell: 'sglang-300k'")) == same
    assert _sha256("\ufeff" + E2) == same


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_keys_does_not_make_another_draft(seed: int) -> None:
    source = _shuffled(SOURCE, random.Random(seed))
    text = yaml.safe_dump(source, sort_keys=False, allow_unicode=True)
    assert list(source) != list(SOURCE)
    assert _sha256(text) == load_draft(E2.encode(), "x").sha256


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, child in items for leaf in _leaves(child, (*path, key))]
    return [path]


LEAVES = _leaves(SOURCE)


@given(st.sampled_from(LEAVES), st.data())
@settings(max_examples=80, deadline=None)
def test_another_value_anywhere_makes_another_draft(path: tuple[str | int, ...], data: st.DataObject) -> None:
    source = copy.deepcopy(SOURCE)
    node = source
    for key in path[:-1]:
        node = node[key]  # type: ignore[index]
    old = node[path[-1]]  # type: ignore[index]
    if isinstance(old, str):
        new: Any = old + data.draw(st.sampled_from(["x", " ", "\u00e9"]))
    elif isinstance(old, int | float) and not isinstance(old, bool):
        new = data.draw(st.sampled_from([old + 1, old / 2 + 0.125, str(old)]))
    else:
        new = [1]
    node[path[-1]] = new  # type: ignore[index]
    assume(new != old)
    assert replace(DRAFT, source=source).sha256 != DRAFT.sha256


def test_the_order_of_a_list_matters() -> None:
    assert _sha256(edited("[0, 1, 2]", "[1, 0, 2]")) != _sha256(E2)


def test_the_order_of_the_arms_does_not_change_what_a_draft_is() -> None:
    turned = edited("    NOBURST: {}\n", "", edited("  arms:\n", "  arms:\n    NOBURST: {}\n"))
    assert _sha256(turned) == _sha256(E2)


@pytest.mark.parametrize("path", sorted((ROOT / "rules").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_rule_file_is_accepted_and_named_after_its_id(path: Path) -> None:
    draft = load_draft(path.read_bytes(), path.name, scripts_for=made_scripts)
    assert draft.id == path.stem
    assert draft.calibration is None or (ROOT / "rules" / f"{draft.calibration}.yaml").is_file()
    assert draft.source["notes"]
    if draft.runs_on == SIMULATOR:
        assert any("econstructed" in note for note in draft.source["notes"])
