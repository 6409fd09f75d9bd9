"""The sections of one registration in LEDGER.md, as lines of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from registry.plain_text import code, markdown

_WORDS = {True: "yes", False: "no", None: "not decidable"}
_READINGS = (
    ("followup_hit_fraction", "hit fraction"),
    ("uncached_prefill_tokens_per_s", "uncached tokens/s"),
    ("backlog_slope_per_s", "backlog slope, 1/s"),
    ("mean_prompt_tokens", "mean prompt"),
    ("completions_per_s", "completions/s"),
    ("idle_s", "idle s"),
    ("turnover_s", "turnover s"),
    ("outstanding", "outstanding"),
)


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def rate_words(rate: float | None) -> str:
    """A rate, or the closed population, in words."""
    return "closed population" if rate is None else f"rate {rate:g}"


def rule_section(entry: dict[str, Any]) -> Iterator[str]:
    """The rules, as frozen."""
    yield from ("", "### Rule", "")
    for kind, note in (("runs", ""), ("reported", " (reported, changes no verdict)")):
        for name, text in entry["rule"][kind].items():
            yield f"- {code(name)}{note}: {code(' '.join(text.split()))}"
    yield f"- each rate passes if {code(entry['rule']['rate'])}"


def rates_section(entry: dict[str, Any]) -> Iterator[str]:
    """The verdict of every rate."""
    yield from ("", "### Verdict by rate", "")
    words = {True: "PASS", False: "FAIL", None: "NOT DECIDABLE"}
    rows = [
        [
            rate_words(r["rate"]),
            words[r["decision"]["value"]],
            markdown(r["decision"]["reason"]),
            ", ".join(f"{code(name)} {count[0]}/{count[1]}" for name, count in r["counts"].items()),
        ]
        for r in entry["rates"]
    ]
    yield from table(["rate", "verdict", "why not", "runs"], rows)


def engine_section(entry: dict[str, Any]) -> Iterator[str]:
    """How the real engine was registered, and what the runs say of it."""
    setup = entry["engine"]
    started = " ".join([*setup["command"], *setup["arguments"]]) or setup["url"]
    yield (
        f"- Runs on a **real engine**, started as frozen: {code(started)}, model {code(setup['model'])}, "
        f"chunk {setup['chunk_tokens']} tokens, at most {setup['batch_requests']} requests at once."
    )
    made = sorted({(run["engine"], run["machine"]) for run in entry["runs"] if run["machine"]})
    for engine, machine in made:
        yield f"- Made on {markdown(engine)}, {markdown(machine)}: consistent records, not proof that it ran."


def runs_section(entry: dict[str, Any]) -> Iterator[str]:
    """Every registered run with its readings."""
    yield from ("", f"### Runs, readings over the window {code(entry['judged_window'])}", "")
    head = ["run", "attempt", "engine", "proof", "verdicts", *(label for _, label in _READINGS)]
    yield from table(head, [_run_row(entry, run) for run in entry["runs"]])
    missing = entry["missing"]
    yield from (
        "",
        f"Missing: {', '.join(code(path) for path in missing)}." if missing else "No registered run is missing.",
    )
    jobs = [f"- {code(run['path'])}: {markdown(run['job'])}." for run in entry["runs"] if run["job"]]
    if jobs:
        yield from ("", "Runs that were a scheduler's jobs, by their own records:", "", *jobs)


def _run_row(entry: dict[str, Any], run: dict[str, Any]) -> list[str]:
    if run["state"] != "complete":
        return [code(run["path"]), "", "", f"**{run['state']}**", *[""] * (1 + len(_READINGS))]
    engine = "**simulated**" if run["simulated"] else markdown(run["engine"] or "not said")
    values = run["readings"].get(entry["judged_window"], {})
    verdicts = ", ".join(f"{v['name']} {_WORDS[v['decision']['value']]}" for v in run["verdicts"])
    return [
        code(run["path"]),
        str(run["attempt"]),
        engine,
        run["outcome"],
        markdown(verdicts),
        *(_number(values.get(name)) for name, _ in _READINGS),
    ]


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.5g}"


def scores_section(entry: dict[str, Any]) -> Iterator[str]:
    """Predictions beside what came out."""
    if not entry["scores"]:
        return
    yield from ("", "### Predictions, frozen before any run", "")
    rows = [
        [
            code(s["name"]),
            s["kind"],
            f"{code(s['arm'])} {'closed' if s['rate'] is None else format(s['rate'], 'g')}",
            code(s["reading"] or f"verdict {s['verdict']}"),
            _predicted(s),
            ", ".join(f"seed {seed}: {_value(value)}" for seed, value in s["measured"].items()),
            f"{s['hits']} of {len(s['measured'])}",
            markdown(s["source"]),
        ]
        for s in entry["scores"]
    ]
    yield from table(["prediction", "kind", "arm, rate", "reading", "predicted", "measured", "hits", "source"], rows)


def _predicted(score: dict[str, Any]) -> str:
    values = dict.fromkeys(_value(value) for value in score["predicted"].values())
    if not values:
        return "**not frozen before the runs**"
    if score["verdict"] is not None:
        return ", ".join(f"seed {seed}: {_value(value)}" for seed, value in score["predicted"].items())
    return f"{', '.join(values)} ± {score['relative_tolerance']:.0%}"


def _value(value: float | bool | None) -> str:
    """A predicted or measured value: a number, or a verdict in words."""
    return _WORDS[value] if isinstance(value, bool) else _number(value)


def attempts_section(entry: dict[str, Any]) -> Iterator[str]:
    """Every attempt found, abandoned and late ones by name."""
    events: dict[str, int] = {}
    for record in entry["attempts"]:
        events[record["event"]] = events.get(record["event"], 0) + 1
    yield from ("", "### Attempts", "")
    yield "Every record found: " + (", ".join(f"{n} {event}" for event, n in sorted(events.items())) or "none") + "."
    if entry.get("exclusions"):
        causes = ", ".join(code(cause) for cause in entry["exclusions"])
        yield f"Registered exclusions: {causes}; at most {entry['max_attempts']} attempts a run."
    # A job that its scheduler starts again makes several attempts under one start record.
    attempts = {(r["arm"], r["rate"], r["seed"], r["attempt"]) for r in entry["attempts"]}
    started = Counter((arm, rate, seed) for arm, rate, seed, _ in attempts)
    for (arm, rate, seed), count in sorted(started.items(), key=str):
        if count > 1:
            yield f"- repeated: {code(arm)} {_rate(rate)} seed {seed} was started {count} times"
    for r in entry["attempts"]:
        if r["event"] == "abandoned" or r["late"]:
            note = markdown(r["reason"] or "result pushed late") + (f" ({code(r['cause'])})" if r["cause"] else "")
            run = f"{code(r['arm'])} {_rate(r['rate'])} seed {r['seed']}"
            yield f"- {r['event']}: {run}, attempt {r['attempt']}: {note}"


def _rate(rate: float | None) -> str:
    return "closed" if rate is None else f"{rate:g}"


def checks_section(entry: dict[str, Any]) -> Iterator[str]:
    """Every check, and what cannot be proven."""
    yield from ("", "### Checks", "")
    rows = [[code(check["name"]), _outcome(check), markdown(check["reason"])] for check in entry["check"]["children"]]
    yield from table(["check", "outcome", "reason"], rows)
    unproven = [c for c in _leaves(entry["check"]) if c["outcome"] == "UNPROVABLE"]
    yield from ("", "### What cannot be proven here", "")
    yield f"- {markdown(entry['status']['name'])}, no more: {markdown(entry['status']['reason'])}."
    for check in unproven:
        yield f"- {code(check['name'])}: {markdown(check['reason'])}"


def _outcome(check: dict[str, Any]) -> str:
    word = check["outcome"] if check["outcome"] == "PROVEN" else f"**{check['outcome']}**"
    return word if check["needed"] else f"{word} (not needed by the claim)"


def _leaves(check: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not check["children"]:
        yield check
    for child in check["children"]:
        yield from _leaves(child)


def texts_section(entry: dict[str, Any]) -> Iterator[str]:
    """Blindness, caveats, notes, deviations, amendments."""
    for name in ("blindness", "caveats", "notes", "deviations", "amendments"):
        texts = entry.get(name)
        texts = [texts] if isinstance(texts, str) else texts or []
        if texts:
            yield from ("", f"### {name.capitalize()}", "")
            yield from (f"- {markdown(text)}" for text in texts)
