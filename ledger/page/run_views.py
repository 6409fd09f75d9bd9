"""The runs of a registration as the page's template shows them: readings beside
thresholds, predictions beside outcomes, attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ledger.page.words import GOOD, OPEN, number, rate_words, several, share, tone

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
_SIGNS = {"<=": "\u2264", ">=": "\u2265", "==": "=", "!=": "\u2260"}


def run_view(run: dict[str, Any], window: str) -> dict[str, Any]:
    """A run with its readings over the window."""
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


def threshold_tables(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
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


def score_view(score: dict[str, Any]) -> dict[str, Any]:
    """A prediction, seed by seed beside what was measured."""
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


def attempts_view(entry: dict[str, Any]) -> dict[str, Any]:
    """How many records of attempts there are, and each that was abandoned, late or repeated."""
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
