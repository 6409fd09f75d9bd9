"""One registration, or one set of predictions, as the page's template shows it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ledger.page.first_screen import failure_words, pass_rates
from ledger.page.words import BAD, GOOD, OPEN, clock_time, number, rate_words, several, share, span, tone

READINGS = (
    ("followup_hit_fraction", "hit fraction"),
    ("uncached_prefill_tokens_per_s", "uncached, tokens/s"),
    ("backlog_slope_per_s", "backlog slope, 1/s"),
    ("mean_prompt_tokens", "mean prompt, tokens"),
    ("completions_per_s", "completions, 1/s"),
    ("outstanding", "outstanding"),
    ("idle_s", "idle, s"),
    ("turnover_s", "turnover, s"),
)
_VERDICTS = {True: "PASS", False: "FAIL", None: "NOT DECIDABLE"}
_SIGNS = {"<=": "\u2264", ">=": "\u2265", "==": "=", "!=": "\u2260"}
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
        "runs": [_run(run, entry["judged_window"]) for run in entry["runs"]],
        "made_on": sorted({(run["engine"], run["machine"]) for run in entry["runs"] if run["machine"]}),
        "engine": entry["engine"],
        "thresholds": list(_thresholds(entry)),
        "scores": [_score(score) for score in entry["scores"]],
        "attempts": _attempts(entry),
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


def _run(run: dict[str, Any], window: str) -> dict[str, Any]:
    complete = run["state"] == "complete"
    values = run["readings"].get(window, {})
    return {
        "path": run["path"],
        "state": run["state"],
        "complete": complete,
        "attempt": run["attempt"],
        "engine": "simulated" if run["simulated"] else run["engine"] or "not said",
        "job": run["job"],
        "outcome": run["outcome"] or run["state"],
        "reason": run["reason"] or "",
        "tone": tone(run["outcome"]) if run["outcome"] else OPEN,
        "verdicts": [
            {"name": v["name"], "word": _decided(v["decision"]), "reported": v["reported"],
             "tone": tone(v["decision"]["value"])}
            for v in run["verdicts"]
        ],
        "readings": [number(values.get(name)) if values else "" for name, _ in READINGS],
        "sha256": run["run_sha256"],
        "folder": run["folder"],
    }  # fmt: skip


def _decided(decision: dict[str, Any]) -> str:
    words = {True: "yes", False: "no", None: "not decidable"}[decision["value"]]
    return f"{words}: {decision['reason']}" if decision["reason"] else words


def _thresholds(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A table a verdict: its comparisons as columns, the runs of its arm as rows."""
    for name in (*entry["rule"]["runs"], *entry["rule"]["reported"]):
        arm, _, verdict = name.partition(".")
        runs = [run for run in entry["runs"] if run["arm"] == arm and run["thresholds"].get(verdict)]
        if not runs:
            continue
        head = runs[0]["thresholds"][verdict]
        yield {
            "name": name,
            "columns": [f"{one['left']} {one['sign']} {one['right']}" for one in head],
            "rows": [(run["path"], [_compared(one) for one in run["thresholds"][verdict]]) for run in runs],
        }


def _compared(one: dict[str, Any]) -> dict[str, Any]:
    words = {True: "holds", False: "does not hold", None: "not decidable"}[one["holds"]]
    sides = f"{number(one['left_value'])} {_SIGNS.get(one['sign'], one['sign'])} {number(one['right_value'])}"
    return {"sides": sides, "words": words, "tone": {True: GOOD, False: "", None: OPEN}[one["holds"]]}


def _score(score: dict[str, Any]) -> dict[str, Any]:
    rows = [
        (seed, number(score["predicted"][seed]) if seed in score["predicted"] else "not frozen", number(value))
        for seed, value in score["measured"].items()
    ]
    tolerance = score["relative_tolerance"]
    return {
        "name": score["name"],
        "kind": score["kind"],
        "where": f"{score['arm']}, {rate_words(score['rate'])}",
        "what": score["reading"] or f"verdict {score['verdict']}",
        "tolerance": "equal" if tolerance is None else f"± {share(tolerance)}",
        "rows": rows,
        "hits": f"{score['hits']} of {len(rows)}",
        "tone": "" if not rows else GOOD if score["hits"] == len(rows) else OPEN,
        "source": score["source"],
    }


def _attempts(entry: dict[str, Any]) -> dict[str, Any]:
    records = entry["attempts"]
    events = Counter(record["event"] for record in records)
    kept = {(r["arm"], r["rate"], r["seed"], r["attempt"]) for r in records}
    repeated = Counter((arm, rate, seed) for arm, rate, seed, _ in kept)
    lines = [
        f"repeated: {arm}, {rate_words(rate)}, seed {seed} was started {several(count, 'time')}"
        for (arm, rate, seed), count in sorted(repeated.items(), key=str)
        if count > 1
    ]
    for record in records:
        if record["event"] == "abandoned" or record["late"]:
            run = f"{record['arm']}, {rate_words(record['rate'])}, seed {record['seed']}, attempt {record['attempt']}"
            cause = f" ({record['cause']})" if record["cause"] else ""
            lines.append(f"{record['event']}: {run}: {record['reason'] or 'result pushed late'}{cause}")
    summary = ", ".join(f"{count:,} {event}" for event, count in sorted(events.items())) or "none"
    return {
        "summary": summary,
        "lines": lines,
        "exclusions": entry["exclusions"],
        "max_attempts": entry["max_attempts"],
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
