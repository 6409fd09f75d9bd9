"""LEDGER.md: the ledger document for people who read, not run."""

from __future__ import annotations

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


def ledger_markdown(document: dict[str, Any]) -> str:
    """The whole page. Everything that a study wrote is shown as plain text."""
    entries = document["registrations"]
    lines = [f"# Evidence ledger of {markdown(document['study'])}", "", f"**{document['last_line']}**", ""]
    if any(entry.get("simulated") for entry in entries):
        lines += ["> **Simulated.** Runs marked so come from a simulator, not from a GPU.", ""]
    lines += list(_summary(entries))
    for entry in entries:
        lines += ["", *_registration(entry)]
    lines += ["", "## Runs outside any registration", ""]
    lines += [f"- {code(path)}: exploratory, for ever" for path in document["exploratory_runs"]] or ["None found."]
    lines += [f"- attempts log: **REFUTED** {markdown(p)}" for p in document["attempts_log_problems"]]
    lines += ["", "## What no one can prove", ""] + [f"- {text}" for text in document["no_one_can_prove"]]
    return "\n".join(lines) + "\n"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _summary(entries: list[dict[str, Any]]) -> Iterator[str]:
    rows = [
        [
            code(e["tag"]),
            markdown(e["title"] or "unreadable"),
            e["claim"],
            e["status"]["name"],
            _proof(e),
            markdown(e["verdict"]["words"]),
            _pushed(e),
        ]
        for e in entries
    ]
    yield from _table(["registration", "title", "claim", "status", "proof", "verdict", "pushed"], rows)


def _proof(entry: dict[str, Any]) -> str:
    if entry["claim_too_strong"]:
        return "**FAILED**: claim beyond status"
    word = "**FAILED**" if entry["failed"] else entry["check"]["outcome"]
    return f"{word}, {len(entry['missing'])} runs missing" if entry["missing"] else word


def _pushed(entry: dict[str, Any]) -> str:
    return f"{entry['push']['timestamp']} (local witness)" if entry["push"] else "no witness"


def _registration(entry: dict[str, Any]) -> Iterator[str]:
    yield f"## {code(entry['tag'])} {markdown(entry['title'] or '')}"
    yield ""
    if entry["question"]:
        yield markdown(entry["question"])
        yield ""
    yield from _facts(entry)
    if "rule" in entry:
        yield from _rule(entry)
        yield from _rates(entry)
        yield from _runs(entry)
        yield from _scores(entry)
    yield from _attempts(entry)
    yield from _checks(entry)
    yield from _texts(entry)


def _facts(entry: dict[str, Any]) -> Iterator[str]:
    status = entry["status"]
    yield f"- Claim: **{entry['claim']}**. Derived status: **{status['name']}** ({markdown(status['reason'])})."
    yield f"- Verdict: **{markdown(entry['verdict']['words'])}**. Proof: {_proof(entry)}."
    yield f"- Digest of the registration: {code(entry['digest'])}"
    if entry["push"]:
        yield f"- Pushed {entry['push']['timestamp']}, by the clock of the local witness: the author's own machine."
    if entry["beacon"]:
        beacon = entry["beacon"]
        yield (
            f"- Plans drawn from {markdown(beacon['chain'])} round {beacon['round']}, {code(beacon['signature'])}, "
            "random bytes that came after the push."
        )
    if entry.get("seed_binding") == "literal":
        yield "- Literal seeds: the order of registration and runs rests on run clocks."
    if entry.get("calibration"):
        c = entry["calibration"]
        yield (
            f"- Calibrated by {code('reg/' + c['registration'] + '/v' + str(c['version']))}: "
            f"{c['all_miss_prefill_tokens_per_s']:.1f} tokens/s all-miss, "
            f"lambda_ref {c['lambda_ref_per_s']:.5f} sessions/s."
        )
    for rate in (entry.get("rehearsal") or {}).get("rates", []):
        yield (
            f"- Rehearsed before freezing (simulated, {len(entry['rehearsal']['seeds'])} literal seeds), "
            f"{_rate(rate['rate'])}: the rule would pass {rate['pass_share']:.0%} of the time."
        )
    if entry.get("supersedes"):
        yield f"- A later version of the registration with digest {code(entry['supersedes'])}."
    if entry.get("simulated"):
        yield "- **Simulated** runs: a simulator's, not a GPU's."


def _rate(rate: float | None) -> str:
    return "closed population" if rate is None else f"rate {rate:g}"


def _rule(entry: dict[str, Any]) -> Iterator[str]:
    yield from ("", "### Rule", "")
    for kind, note in (("runs", ""), ("reported", " (reported, changes no verdict)")):
        for name, text in entry["rule"][kind].items():
            yield f"- {code(name)}{note}: {code(' '.join(text.split()))}"
    yield f"- each rate passes if {code(entry['rule']['rate'])}"


def _rates(entry: dict[str, Any]) -> Iterator[str]:
    yield from ("", "### Verdict by rate", "")
    words = {True: "PASS", False: "FAIL", None: "NOT DECIDABLE"}
    rows = [
        [
            _rate(r["rate"]),
            words[r["decision"]["value"]],
            markdown(r["decision"]["reason"]),
            ", ".join(f"{code(name)} {count[0]}/{count[1]}" for name, count in r["counts"].items()),
        ]
        for r in entry["rates"]
    ]
    yield from _table(["rate", "verdict", "why not", "runs"], rows)


def _runs(entry: dict[str, Any]) -> Iterator[str]:
    yield from ("", f"### Runs, readings over the window {code(entry['judged_window'])}", "")
    head = ["run", "attempt", "engine", "proof", "verdicts", *(label for _, label in _READINGS)]
    yield from _table(head, [_run_row(entry, run) for run in entry["runs"]])
    missing = entry["missing"]
    yield from (
        "",
        f"Missing: {', '.join(code(path) for path in missing)}." if missing else "No registered run is missing.",
    )


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


def _scores(entry: dict[str, Any]) -> Iterator[str]:
    if not entry["scores"]:
        return
    yield from ("", "### Predictions, frozen with the registration", "")
    rows = [
        [
            code(s["name"]),
            f"{code(s['arm'])} {s['rate']:g}",
            code(s["reading"]),
            f"{s['predicted']:.5g} ± {s['relative_tolerance']:.0%}",
            ", ".join(f"seed {seed}: {_number(value)}" for seed, value in s["measured"].items()),
            f"{s['hits']} of {len(s['measured'])}",
            markdown(s["source"]),
        ]
        for s in entry["scores"]
    ]
    yield from _table(["prediction", "arm, rate", "reading", "predicted", "measured", "hits", "source"], rows)


def _attempts(entry: dict[str, Any]) -> Iterator[str]:
    events: dict[str, int] = {}
    for record in entry["attempts"]:
        events[record["event"]] = events.get(record["event"], 0) + 1
    yield from ("", "### Attempts", "")
    yield "Every record found: " + (", ".join(f"{n} {event}" for event, n in sorted(events.items())) or "none") + "."
    for r in entry["attempts"]:
        if r["event"] == "abandoned" or r["late"]:
            rate = "closed" if r["rate"] is None else f"{r['rate']:g}"
            note = markdown(r["reason"] or "result pushed late")
            yield f"- {r['event']}: {code(r['arm'])} {rate} seed {r['seed']}, attempt {r['attempt']}: {note}"


def _checks(entry: dict[str, Any]) -> Iterator[str]:
    yield from ("", "### Checks", "")
    rows = [[code(check["name"]), _outcome(check), markdown(check["reason"])] for check in entry["check"]["children"]]
    yield from _table(["check", "outcome", "reason"], rows)
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


def _texts(entry: dict[str, Any]) -> Iterator[str]:
    for name in ("blindness", "caveats", "notes", "deviations", "amendments"):
        texts = entry.get(name)
        texts = [texts] if isinstance(texts, str) else texts or []
        if texts:
            yield from ("", f"### {name.capitalize()}", "")
            yield from (f"- {markdown(text)}" for text in texts)
