"""What the first screen says: promised, when and by whose clock, out, failed, unproven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ledger.page.words import BAD, GOOD, OPEN, clock_time, several, share, span
from registry.timestamps import moment

_MAX_LINES = 5
_MAX_NAMES = 2


@dataclass(frozen=True)
class Tile:
    """One answer: its question, the answer in a few words, lines below, and a tone."""

    question: str
    answer: str
    lines: tuple[str, ...]
    tone: str


def tiles(document: dict[str, Any]) -> list[Tile]:
    """The five answers, of a document whose texts are plain."""
    return [_promised(document), _when(document), _came_out(document), _failed(document), _unproven(document)]


def _registered(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in document["registrations"] if entry["kind"] == "registration"]


def _cut(lines: list[str]) -> tuple[str, ...]:
    more = len(lines) - _MAX_LINES
    return (*lines[:_MAX_LINES], f"and {more:,} more, below") if more > 0 else tuple(lines)


def _promised(document: dict[str, Any]) -> Tile:
    own = _registered(document)
    runs = sum(len(entry["runs"]) for entry in own)
    predictions = len(document["registrations"]) - len(own)
    lines = [f"{several(len(document['designs']), 'design')}, {several(runs, 'run')}"]
    if predictions:
        lines.append(f"{several(predictions, 'set')} of predictions")
    claims = Counter(entry["claim"] for entry in own)
    lines += [f"{count:,} claimed to be {claim}" for claim, count in sorted(claims.items())]
    return Tile("Promised", several(len(own), "registration"), _cut(lines), "")


def _when(document: dict[str, Any]) -> Tile:
    pushes = sorted((e["push"] for e in document["registrations"] if e["push"]), key=lambda push: push["time"])
    if not pushes:
        return Tile("When, by whose clock", "Not shown", ("no witness saw a push",), OPEN)
    first, last = clock_time(pushes[0]["time"]), clock_time(pushes[-1]["time"])
    worth = {True: "independent of the author", False: "the author's word"}
    seen = Counter((push["witness"], push["independent"]) for push in pushes)
    lines = [
        f"{several(n, 'push', 'pushes')} by the clock of the {who}: {worth[free]}" for (who, free), n in seen.items()
    ]
    if last != first:
        lines.append(f"the last one {last}")
    lines += _least_margin(document)
    own_word = any(not push["independent"] for push in pushes)
    return Tile("When, by whose clock", first, _cut(lines), OPEN if own_word else GOOD)


def _least_margin(document: dict[str, Any]) -> list[str]:
    """The shortest time from a registration's push to the first announcement of its runs."""
    margins = []
    for entry in _registered(document):
        times = {one["what"]: one["time"] for one in entry.get("timeline", ())}
        if {"registration pushed", "first run announced"} <= times.keys():
            pushed, announced = (moment(times[what]) for what in ("registration pushed", "first run announced"))
            margins.append((announced - pushed).total_seconds())
    if not margins:
        return []
    words = span(min(margins))
    return [f"earliest run announced {words[1:]} {'before' if words[0] == '-' else 'after'} its push"]


def _came_out(document: dict[str, Any]) -> Tile:
    passed, failed, open_ = (sum(d[name] for d in document["designs"]) for name in ("passed", "failed", "undecided"))
    answer = f"{passed:,} passed, {failed:,} failed" + (f", {open_:,} not decidable" if open_ else "")
    simulated = sum(bool(entry.get("simulated")) for entry in document["registrations"])
    lines = [f"{simulated:,} on a simulator, not a GPU"] if simulated else []
    lines += [design_words(design, _MAX_NAMES) for design in document["designs"]]
    tone = OPEN if open_ or not document["designs"] else BAD if failed else GOOD
    return Tile("What came out", answer, _cut(lines), tone)


def design_words(design: dict[str, Any], most: int | None = None) -> str:
    """`7 registered, 1 passed, 6 failed: e2`, with how many rules were tried; at
    most so many names.
    """
    words = f"{design['registered']:,} registered"
    for name, word in (("passed", "passed"), ("failed", "failed"), ("undecided", "not decidable")):
        words += f", {design[name]:,} {word}" if design[name] or name == "passed" else ""
    words += f", under {design['rules']:,} different rules" if design["rules"] > 1 else ""
    names = list(dict.fromkeys(tag.split("/")[1] for tag in design["tags"]))
    more = len(names) - (most or len(names))
    return f"{words}: {', '.join(names[:most])}" + (f" and {more:,} more" if more > 0 else "")


def _failed(document: dict[str, Any]) -> Tile:
    lines = [f"{e['tag']}: {failure_words(e)}" for e in document["registrations"] if e["failed"]]
    problems = [f"attempts log: {problem}" for problem in document["attempts_log_problems"]]
    if not lines + problems:
        return Tile("What failed", "Nothing", ("no evidence contradicts a promise",), GOOD)
    answer = " and ".join([several(len(lines), "proof")] * bool(lines) + ["the attempts log"] * bool(problems))
    return Tile("What failed", answer, _cut(problems + lines), BAD)


def failure_words(entry: dict[str, Any]) -> str:
    """Why an entry failed."""
    if entry["claim_too_strong"]:
        return f"claimed {entry['claim']}, shown {entry['status']['name']}"
    return str(entry["check"]["reason"])


def _unproven(document: dict[str, Any]) -> Tile:
    lines = list(_unproven_lines(document))
    if not lines:
        return Tile("What is unproven", "Nothing that was claimed", (), GOOD)
    return Tile("What is unproven", several(len(lines), "point"), _cut(lines), OPEN)


def _unproven_lines(document: dict[str, Any]) -> Iterator[str]:
    entries = document["registrations"]
    missing = sum(len(entry["missing"]) for entry in entries)
    if missing:
        yield f"{several(missing, 'registered run')} missing"
    for entry in entries:
        if not entry["failed"] and entry["check"]["outcome"] == "UNPROVABLE":
            yield f"{entry['tag']}: {entry['check']['reason']}"
    undecided = [entry for entry in _registered(document) if entry["verdict"]["value"] is None]
    if undecided:
        yield f"{several(len(undecided), 'verdict')} not decidable"
    own_word = [entry for entry in entries if entry["status"]["name"] == "registered"]
    if own_word:
        yield f"the order of {several(len(own_word), 'tag')} and runs: the author's word, or no trusted witness"
    if any(entry.get("simulated") for entry in entries):
        yield "anything about a GPU: runs here are simulated"
    if any(run.get("machine") for entry in entries for run in entry["runs"]):
        yield "that a real engine ran: its records are consistent, no more"


def pass_rates(entry: dict[str, Any]) -> list[str]:
    """How often the rule would pass over random plans, rate by rate, as rehearsed."""
    rehearsal = entry.get("rehearsal") or {}
    return [
        f"{share(rate['pass_share'])}" + (f" at {rate['rate']:g}" if rate["rate"] is not None else "")
        for rate in rehearsal.get("rates", [])
    ]
