"""LEDGER.md: the ledger document for people who read, not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.log_section import log_section
from ledger.sections import (
    attempts_section,
    checks_section,
    engine_section,
    rate_words,
    rates_section,
    rule_section,
    runs_section,
    scores_section,
    table,
    texts_section,
)
from registry.plain_text import code, markdown


def ledger_markdown(document: dict[str, Any]) -> str:
    """The whole page. Everything that a study wrote is shown as plain text."""
    entries = document["registrations"]
    lines = [f"# Evidence ledger of {markdown(document['study'])}", "", f"**{document['last_line']}**", ""]
    if any(entry.get("simulated") for entry in entries):
        lines += ["> **Simulated.** Runs marked so come from a simulator, not from a GPU.", ""]
    if document["policy_sha256"]:
        lines += [f"> Judged by a trust policy of its writer's own, SHA-256 {code(document['policy_sha256'])}.", ""]
    lines += list(_summary(entries))
    for entry in entries:
        lines += ["", *_registration(entry)]
    lines += ["", "## Runs outside any registration", ""]
    lines += [f"- {code(path)}: exploratory, for ever" for path in document["exploratory_runs"]] or ["None found."]
    lines += [f"- attempts log: **REFUTED** {markdown(p)}" for p in document["attempts_log_problems"]]
    lines += ["", "## Pushes whose commits are not in the repository", ""]
    lines += [f"- {code(words)}: what it held cannot be told" for words in document["unseen_pushes"]] or ["None found."]
    lines += list(log_section(document["log"])) if "log" in document else []
    lines += ["", "## What no one can prove", ""] + [f"- {text}" for text in document["no_one_can_prove"]]
    return "\n".join(lines) + "\n"


def _summary(entries: list[dict[str, Any]]) -> Iterator[str]:
    rows = [
        [
            code(e["tag"]),
            markdown(e["title"] or "unreadable"),
            e["claim"],
            e["status"]["name"],
            _proof(e),
            markdown(e["verdict"]["words"]) if e["kind"] == "registration" else "(predictions)",
            _pushed(e),
        ]
        for e in entries
    ]
    yield from table(["registration", "title", "claim", "status", "proof", "verdict", "pushed"], rows)


def _proof(entry: dict[str, Any]) -> str:
    if entry["claim_too_strong"]:
        return "**FAILED**: claim beyond status"
    word = "**FAILED**" if entry["failed"] else entry["check"]["outcome"]
    return f"{word}, {len(entry['missing'])} runs missing" if entry["missing"] else word


def _pushed(entry: dict[str, Any]) -> str:
    push = entry["push"]
    return f"{push['time']} ({markdown(push['witness'])})" if push else "no witness"


def _registration(entry: dict[str, Any]) -> Iterator[str]:
    yield f"## {code(entry['tag'])} {markdown(entry['title'] or '')}"
    yield ""
    if entry["question"]:
        yield markdown(entry["question"])
        yield ""
    yield from _facts(entry)
    if "rule" in entry:
        yield from rule_section(entry)
        yield from rates_section(entry)
        yield from runs_section(entry)
        yield from scores_section(entry)
    if entry["kind"] == "registration":
        yield from attempts_section(entry)
    yield from checks_section(entry)
    yield from texts_section(entry)


def _facts(entry: dict[str, Any]) -> Iterator[str]:
    status = entry["status"]
    yield f"- Claim: **{entry['claim']}**. Derived status: **{status['name']}** ({markdown(status['reason'])})."
    if entry["kind"] == "registration":
        yield f"- Verdict: **{markdown(entry['verdict']['words'])}**. Proof: {_proof(entry)}."
    else:
        yield f"- Predictions computed on the drawn plans. Proof: {_proof(entry)}."
    yield f"- Digest of the registration: {code(entry['digest'])}"
    for seen in entry["sightings"]:
        word = "independent" if seen["independent"] else "the author's word"
        what = "Pushed" if seen["kind"] in ("push", "status") else "Existed by"
        clock = f"by the clock of the {markdown(seen['witness'])}"
        yield f"- {what} {seen['time']}, {clock} ({word}; {markdown(seen['source'])})."
    if entry["beacon"] and entry.get("seed_binding", "beacon") == "beacon":
        beacon = entry["beacon"]
        yield (
            f"- Plans drawn from {code(beacon['chain'])} round {beacon['round']}, {code(beacon['signature'])}, "
            "random bytes that no one knew before the push."
        )
    if entry.get("seed_binding") == "literal":
        yield "- Literal seeds: the order of registration and runs rests on run clocks."
    if entry.get("plan_from"):
        p = entry["plan_from"]
        yield (
            f"- Plans taken from {code('reg/' + p['registration'] + '/v' + str(p['version']))}: they existed before "
            "this registration was made, so its author could have known them. The order of registration and runs "
            "rests on run clocks."
        )
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
            f"{rate_words(rate['rate'])}: the rule would pass {rate['pass_share']:.0%} of the time."
        )
    if entry.get("supersedes"):
        yield f"- A later version of the registration with digest {code(entry['supersedes'])}."
    if entry.get("simulated"):
        yield "- **Simulated** runs: a simulator's, not a GPU's."
    if entry.get("engine"):
        yield from engine_section(entry)
