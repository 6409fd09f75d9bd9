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
GOLDEN = Path(__file__).with_name("golden_predictions.json")


def predicted() -> dict[str, float]:
    """Every computed predictor of e2 over literal seeds, by name and run."""
    text = (ROOT / "rules/e2.yaml").read_text().replace("binding: beacon", "binding: literal")
    calibration = Calibration("all-miss-sglang-300k", 1, "0" * 64, 11_200.0, 0.0725, {})
    draft = load_draft(text.encode(), "rules/e2.yaml")
    registration = read_registration(provisional(draft, calibration), "golden")

    def never(run: RunId) -> dict[str, dict[str, float]]:
        raise AssertionError(run)

    return {f"{name} {run.path}": value for (name, run), value in evaluate(registration, None, never).items()}


def test_version_1_gives_its_golden_values() -> None:
    golden = json.loads(GOLDEN.read_text())
    found = predicted()
    assert set(found) == set(golden["values"])
    assert golden["predictor_version"] == 1
    for name, value in golden["values"].items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
