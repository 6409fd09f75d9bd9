"""One registration, or one set of predictions, as the page's template shows it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ledger.page.first_screen import failure_words, pass_rates
from ledger.page.run_views import READINGS, attempts_view, run_view, score_view, threshold_tables
from ledger.page.words import BAD, OPEN, clock_time, rate_words, several, share, span, tone

_VERDICTS = {True: "PASS", False: "FAIL", None: "NOT DECIDABLE"}
_UNSAID = {"deviations": ["None are stated."], "caveats": ["None are stated."]}
_PROSE = ("caveats", "blindness", "deviations", "amendments", "notes")


_ONLY_REGISTERED = (
    "timeline", "rules", "seed_binding", "plan_from", "calibration", "engine", "made_on", "prose", "file", "runs",
)  # fmt: skip


def entry_view(entry: dict[str, Any]) -> dict[str, Any]:
    """Everything that the template shows of an entry whose texts are plain."""
    registered = entry["kind"] == "registration"
    view = {
        **dict.fromkeys(_ONLY_REGISTERED, ()),
        "tag": entry["tag"],
        "anchor": re.sub(r"[^A-Za-z0-9.]", "-", entry["tag"]),
        "title": entry["title"] or "unreadable",
        "question": entry["question"],
        "registered": registered,
        "claim": entry["claim"],
        "status": entry["status"],
        "proof": proof_words(entry),
        "proof_word": "FAILED" if entry["failed"] else entry["check"]["outcome"],
        "tone": BAD if entry["failed"] else OPEN if entry["missing"] else tone(entry["check"]["outcome"]),
        "verdict": entry["verdict"]["words"] if registered else "(predictions)",
        "verdict_word": _VERDICTS[entry["verdict"]["value"]] if registered else "",
        "verdict_tone": tone(entry["verdict"]["value"]) if registered else "",
        "push": entry["push"],
        "pushed": clock_time(entry["push"]["time"]) if entry["push"] else "not shown",
        "pass_rates": pass_rates(entry),
        "simulated": bool(entry.get("simulated")),
        "sightings": [seen | {"shown": clock_time(seen["time"])} for seen in entry["sightings"]],
        "beacon": entry["beacon"] if entry.get("seed_binding", "beacon") == "beacon" else None,
        "digest": entry["digest"],
        "missing": entry["missing"],
        "checks": [_check(c) for c in entry["check"]["children"] if not c["children"] or c["outcome"] != "PROVEN"],
        "run_checks": _run_checks(entry["check"]["children"]),
        "unproven": [_check(check) for check in _leaves(entry["check"]) if check["outcome"] != "PROVEN"],
    }
    return view | (_registration(entry) if "rule" in entry else {})


def proof_words(entry: dict[str, Any]) -> str:
    """The outcome of the proof, and what is missing."""
    if entry["failed"]:
        return f"FAILED: {failure_words(entry)}"
    word = str(entry["check"]["outcome"])
    return f"{word}, {several(len(entry['missing']), 'run')} missing" if entry["missing"] else word


def _registration(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "timeline": [_moment(one) for one in entry["timeline"]],
        "rules": list(_rules(entry["rule"])),
        "rate_rule": entry["rule"]["rate"],
        "rate_words": entry["rule"]["rate_words"],
        "rates": [_rate(rate, entry.get("rehearsal")) for rate in entry["rates"]],
        "rehearsed_seeds": len((entry["rehearsal"] or {}).get("seeds", [])),
        "judged_window": entry["judged_window"],
        "reading_names": [label for _, label in READINGS],
        "runs": [run_view(run, entry["judged_window"]) for run in entry["runs"]],
        "made_on": sorted({(run["engine"], run["machine"]) for run in entry["runs"] if run["machine"]}),
        "engine": entry["engine"],
        "thresholds": list(threshold_tables(entry)),
        "scores": [score_view(score) for score in entry["scores"]],
        "attempts": attempts_view(entry),
        "changes": entry["changes"],
        "supersedes": entry["supersedes"],
        "file": entry["file"],
        "calibration": entry["calibration"],
        "plan_from": entry["plan_from"],
        "seed_binding": entry["seed_binding"],
        "prose": [(name, texts) for name in _PROSE if (texts := _texts(entry[name]) or _UNSAID.get(name))],
    }


def _moment(one: dict[str, Any]) -> dict[str, Any]:
    margin_s = one["margin_s"]
    between = "" if margin_s is None else "by one clock" if one["one_clock"] else "between two clocks"
    return one | {
        "shown": clock_time(one["time"]),
        "margin": None if margin_s is None else span(margin_s),
        "between": between,
        "early": margin_s is not None and margin_s < 0,
        "worth": "independent" if one["independent"] else "the author's word",
    }


def _rules(rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind in ("runs", "reported"):
        for name, text in rule[kind].items():
            yield {"name": name, "text": text, "words": rule["words"][name], "reported": kind == "reported"}


def _rate(rate: dict[str, Any], rehearsal: dict[str, Any] | None) -> dict[str, Any]:
    value = rate["decision"]["value"]
    rehearsed = {row["rate"]: row["pass_share"] for row in (rehearsal or {}).get("rates", [])}
    return {
        "rate": rate_words(rate["rate"]),
        "verdict": _VERDICTS[value],
        "tone": tone(value),
        "reason": rate["decision"]["reason"],
        "counts": [f"{name} {count[0]} of {count[1]}" for name, count in rate["counts"].items()],
        "rehearsed": share(rehearsed[rate["rate"]]) if rate["rate"] in rehearsed else "not rehearsed",
    }


def _check(check: dict[str, Any]) -> dict[str, Any]:
    return check | {"tone": tone(check["outcome"]) if check["needed"] else ""}


def _run_checks(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks that each run had, by name, and how many came out how."""
    leaves = [leaf for check in checks if check["children"] for leaf in _leaves(check)]
    counts = Counter((leaf["name"], leaf["outcome"]) for leaf in leaves)
    names = dict.fromkeys(leaf["name"] for leaf in leaves)
    return [
        {"name": name, "counts": [counts[name, outcome] for outcome in ("PROVEN", "REFUTED", "UNPROVABLE")]}
        for name in names
    ]


def _leaves(check: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not check["children"]:
        yield check
    for child in check["children"]:
        yield from _leaves(child)


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])
