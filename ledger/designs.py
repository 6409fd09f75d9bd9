"""Registrations beside each other: same designs grouped, versions compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from registry.canonical import digest
from registry.draft import Draft
from verifier.report import Proof

PROSE = ("blindness", "caveats", "notes", "deviations", "amendments")
_NOT_THE_TEST = ("id", "title", "question", "claim", *PROSE)
_WEIGHT = {"rule": 0, "design": 1, "cell": 2, "calibration": 3, "predictors": 4}
"""What decides comes first among the changes."""
_MAX_CHANGES = 60
_MAX_TEXT = 400


def designs_of(proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    """The registered designs, in order of their first tag: how often each was
    registered, under how many different rules, and what came out.

    The same design is the same cell, arms, workload, rates and windows, whatever
    its title, seeds and thresholds: who tries until it pleases shows here.
    """
    groups: dict[str, list[Proof]] = {}
    for proof in proofs:
        if proof.kind == "registration" and proof.registration is not None:
            groups.setdefault(_design_digest(proof.registration.draft), []).append(proof)
    return [_counted(group) for group in groups.values()]


def _counted(group: list[Proof]) -> dict[str, Any]:
    verdicts = [proof.verdict.value for proof in group]
    drafts = [proof.registration.draft for proof in group if proof.registration]
    return {
        "tags": [proof.tag for proof in group],
        "rules": len({_test_digest(draft) for draft in drafts}),
        "registered": len(group),
        "passed": verdicts.count(True),
        "failed": verdicts.count(False),
        "undecided": verdicts.count(None),
    }


def _design_digest(draft: Draft) -> str:
    design = {name: value for name, value in draft.source["design"].items() if name != "seeds"}
    return digest([draft.source["cell"], draft.runs_on, design])


def _test_digest(draft: Draft) -> str:
    """What decides: the draft without its names, seeds and prose."""
    source = {name: value for name, value in draft.source.items() if name not in _NOT_THE_TEST}
    return digest({**source, "design": {k: v for k, v in source["design"].items() if k != "seeds"}})


def changes_of(proof: Proof, proofs: Sequence[Proof]) -> dict[str, Any] | None:
    """What a version changed in its predecessor's rule file; None without one here."""
    own = proof.registration
    if own is None or own.supersedes is None:
        return None
    others = (other for other in proofs if other.kind == "registration" and other.registration)
    before = next((o for o in others if o.registration and o.registration.digest == own.supersedes), None)
    if before is None or before.registration is None:
        return None
    return {"before": before.tag, "changes": draft_changes(before.registration.draft.source, own.draft.source)}


def draft_changes(before: Any, after: Any) -> list[dict[str, str | None]]:
    """The fields of two rule files that differ, by their paths; at most 60.

    Values as JSON text, null where a field is not there.
    """
    old, new = dict(_fields(before, "")), dict(_fields(after, ""))
    paths = [path for path in dict.fromkeys((*old, *new)) if old.get(path) != new.get(path)]
    paths.sort(key=lambda path: _WEIGHT.get(path.partition(".")[0], len(_WEIGHT)))
    return [{"path": path, "before": old.get(path), "after": new.get(path)} for path in paths[:_MAX_CHANGES]]


def _fields(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every field with its value; predictors by their names, other lists whole."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        value = {item["name"]: item for item in value}
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _fields(item, f"{path}.{key}" if path else str(key))
        return
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    yield path, text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
