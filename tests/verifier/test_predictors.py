"""Predictor version 1, pinned: another value needs another version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.workflows.rehearse import provisional
from registry.design import RunId
from registry.draft import load_draft
from registry.registration import Calibration, read_registration
from verifier.predictors import evaluate

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads(Path(__file__).with_name("golden_predictions.json").read_text())
NEWER = """predictors:
  - name: peak
    kind: first-principles-trap
    predictor_version: 1
    source: golden
    arm: BURST
    verdict: trapped
  - name: peak-capless
    kind: first-principles-trap
    predictor_version: 1
    source: golden
    arm: NOBURST
    verdict: good
"""
CLOSED = "".join(
    f"""  - name: {reading.replace("_", "-")}-{costs}
    kind: closed-population
    predictor_version: 1
    costs: {costs}
    source: golden
    arm: CLOSED
    window: judged
    reading: {reading}
    relative_tolerance: 0.1
"""
    for reading in ("followup_hit_fraction", "reuse_fraction", "turns_per_s", "completions_per_s")
    for costs in ("step-costs", "first-principles")
)


def predicted(text: str) -> dict[str, float]:
    """Every computed predictor of a file over literal seeds, by name and run."""
    calibration = Calibration("all-miss-sglang-300k", 1, "0" * 64, 11_200.0, 0.0725, {})
    draft = load_draft(text.replace("binding: beacon", "binding: literal").encode(), "rules/e2.yaml")
    registration = read_registration(provisional(draft, calibration), "golden")

    def never(run: RunId) -> dict[str, dict[str, float]]:
        raise AssertionError(run)

    return {f"{name} {run.path}": value for (name, run), value in evaluate(registration, None, never).items()}


def e2() -> str:
    return (ROOT / "rules/e2.yaml").read_text()


def newer() -> str:
    """e2 with predictors of the later kinds, and an arm of 30 sessions."""
    text = e2()
    text = text[: text.index("predictors:")] + NEWER + CLOSED + text[text.index("blindness:") :]
    return text.replace("    NOBURST: {}\n", "    NOBURST: {}\n    CLOSED: {population: 30}\n")


@pytest.mark.parametrize(("kinds", "text"), [("values", e2()), ("newer_values", newer())], ids=["e2", "newer"])
def test_version_1_gives_its_golden_values(kinds: str, text: str) -> None:
    found = predicted(text)
    assert set(found) == set(GOLDEN[kinds])
    assert GOLDEN["predictor_version"] == 1
    for name, value in GOLDEN[kinds].items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
