"""The helper that holds answers against GitHub's description can refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError

from tests.github_schema import validate

ACTIVITY = "/repos/{owner}/{repo}/activity"


def row(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": 1,
        "node_id": "x",
        "before": "0" * 40,
        "after": "1" * 40,
        "ref": "refs/heads/main",
        "timestamp": "2026-01-01T00:00:00Z",
        "activity_type": "push",
        "actor": None,
    }
    return {**whole, **changes}


def test_a_row_without_an_actor_fits() -> None:
    validate(ACTIVITY, "GET", 200, [row()])
    validate(ACTIVITY, "GET", 200, [])


@pytest.mark.parametrize(
    "change", [{"id": "1"}, {"timestamp": None}, {"activity_type": "tag_creation"}, {"actor": {"login": "octocat"}}]
)
def test_a_row_that_differs_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validate(ACTIVITY, "GET", 200, [row(**change)])


def test_the_example_that_github_gives_does_not_fit_its_own_schema() -> None:
    old = {key: value for key, value in row().items() if key != "timestamp"}
    with pytest.raises(ValidationError, match="timestamp"):
        validate(ACTIVITY, "GET", 200, [{**old, "pushed_at": "2011-01-26T19:06:43Z"}])


def test_an_error_has_a_form_too() -> None:
    validate("/repos/{owner}/{repo}", "GET", 404, {"message": "Not Found", "documentation_url": "https://x.org"})
    with pytest.raises(ValidationError):
        validate("/repos/{owner}/{repo}", "GET", 404, {"message": 1})
    with pytest.raises(KeyError):
        validate("/repos/{owner}/{repo}", "GET", 418, {})


def test_a_missing_description_skips_here_and_fails_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "none.json"
    monkeypatch.delenv("TRAP_GITHUB_SCHEMA", raising=False)
    with pytest.raises(pytest.skip.Exception, match="npm"):
        validate(ACTIVITY, "GET", 200, [], description=missing)
    monkeypatch.setenv("TRAP_GITHUB_SCHEMA", "required")
    with pytest.raises(pytest.fail.Exception, match="npm"):
        validate(ACTIVITY, "GET", 200, [], description=missing)
