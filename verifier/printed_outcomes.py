"""The paper's printed outcomes of its registered tests, as data with their source.

`printed_outcomes.json` holds one entry an outcome: which runs it is about,
what is read from them, what the paper prints and where.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from registry.errors import DraftError, ManyErrors
from registry.reading_catalogue import READING_KINDS
from registry.schema_check import check
from registry.strict_yaml import Document, load

SCALES: Final[dict[str, str]] = {
    "lambda_ref_per_s": "the cell's reference rate, as calibrated",
    "lambda_miss_per_s": "model F's all-miss capacity, in the calibrated scale",
    "lambda_ref_prefill_tokens_per_s": "lambda_ref times the expected prompt tokens of a session",
    "model_f_sigma_per_s": "model F's growth of the sessions present, in the calibrated scale",
    "model_f_mean_prompt_tokens": "model F's mean prompt served",
    "model_f_gap_slope": "model F's growth of the gap, 1 - 1/R",
}
"""What a reading may be divided by, beside another reading of its window.
Model F is the paper's, with the cell's fitted costs."""

_SOURCES = ("reading", "verdict", "rate_rule", "predicted", "scored")


@dataclass(frozen=True)
class Printed:
    """One printed value. `kind` is `range` (`low` to `high`, the extremes of
    `of` runs), `count` (`low` of `of` runs), `mean` or `highest` (`low`, of
    `of` runs), or `value` (`low`, of one). The page prints `decimals` of them.
    """

    kind: str
    low: float
    high: float
    of: int
    decimals: int


@dataclass(frozen=True)
class Outcome:
    """One printed outcome: the runs it is about, what is read from them, and
    what is printed.

    `rates` is empty for all of them. Exactly one of `reading` (in `window`,
    over `over` if given; with `within`, the share of runs that near to 1),
    `verdict`, `rate_rule`, `predicted` (a predictor's value, over `over`) and
    `scored` (whether a predictor hit) is set.
    """

    test: str
    tests: tuple[str, ...]
    arms: tuple[str, ...]
    rates: tuple[float, ...]
    reading: str | None
    window: str | None
    over: str | None
    within: float | None
    verdict: str | None
    rate_rule: bool
    predicted: str | None
    scored: str | None
    printed: Printed
    where: str
    note: str | None

    @property
    def what(self) -> str:
        """The quantity in a few words."""
        if self.rate_rule:
            return "the rate passes"
        if self.verdict:
            return f"{self.verdict} runs"
        if self.scored:
            return f"{self.scored} hit"
        name = f"predicted {self.predicted}" if self.predicted else str(self.reading)
        name = f"{name} / {self.over}" if self.over else name
        return f"{name} within {self.within:g} of 1" if self.within else name


@dataclass(frozen=True)
class Paper:
    """A paper's printed outcomes, in the order in which they are shown;
    `unprinted` are tests of which it draws pictures and prints no number.
    """

    source: str
    outcomes: tuple[Outcome, ...]
    unprinted: tuple[str, ...]


@lru_cache
def printed_outcomes() -> Paper:
    """The shipped ones."""
    name = "printed_outcomes.json"
    return load_outcomes((resources.files("verifier") / name).read_bytes(), name)


def load_outcomes(text: bytes, name: str) -> Paper:
    """Load and check a file of printed outcomes; `name` is for messages.

    Raises DraftError, or ManyErrors with every finding.
    """
    document = load(text, name)
    if not isinstance(document.value, dict):
        raise DraftError("printed outcomes are a mapping", where=name, remedy='start with "schema": "trap-printed-1"')
    check(document, "printed")
    entries = document.value["outcomes"]
    if problems := [error for i, entry in enumerate(entries) for error in _problems(document, i, entry)]:
        raise ManyErrors(problems)
    outcomes = tuple(_outcome(entry) for entry in entries)
    return Paper(document.value["source"], outcomes, tuple(document.value.get("unprinted", ())))


def _problems(document: Document, index: int, entry: dict[str, Any]) -> list[DraftError]:
    def error(field: str, what: str, remedy: str) -> DraftError:
        value = entry.get(field)
        return DraftError(what, where=document.where(("outcomes", index, field)), value=value, remedy=remedy)

    found = []
    sources = [name for name in _SOURCES if name in entry]
    if len(sources) != 1:
        return [
            error("test", f"an outcome reads one thing, not {len(sources)}", "reading, verdict, rate_rule, predicted")
        ]
    if "reading" in entry and entry["reading"] not in READING_KINDS:
        found.append(error("reading", "no reading of this name", "a name of the reading catalogue"))
    if ("window" in entry) != ("reading" in entry):
        found.append(error("window", "a reading has a window, and only a reading", "name the window of the reading"))
    if "over" in entry and entry["over"] not in SCALES and entry["over"] not in READING_KINDS:
        found.append(error("over", "no scale of this name", f"a reading, or one of: {', '.join(SCALES)}"))
    if "over" in entry and sources[0] not in ("reading", "predicted"):
        found.append(error("over", "a verdict has no scale", "leave it out"))
    printed = entry["printed"]
    counted = sources[0] in ("verdict", "rate_rule", "scored") or "within" in entry
    if counted != ("count" in printed):
        found.append(error("printed", "a count is printed of verdicts, and of nothing else", "count and of"))
    if printed.get("low", 0) > printed.get("high", printed.get("low", 0)):
        found.append(error("printed", "the range ends before it begins", "low, then high"))
    if printed.get("count", 0) > printed.get("of", 0):
        found.append(error("printed", "more runs than there are", "count at most of"))
    return found


def _outcome(entry: dict[str, Any]) -> Outcome:
    return Outcome(
        test=entry["test"],
        tests=tuple(entry.get("tests", (entry["test"],))),
        arms=tuple(entry["arms"]),
        rates=tuple(float(rate) for rate in entry.get("rates", ())),
        reading=entry.get("reading"),
        window=entry.get("window"),
        over=entry.get("over"),
        within=entry.get("within"),
        verdict=entry.get("verdict"),
        rate_rule=entry.get("rate_rule", False),
        predicted=entry.get("predicted"),
        scored=entry.get("scored"),
        printed=_printed(entry["printed"]),
        where=entry["where"],
        note=entry.get("note"),
    )


def _printed(source: dict[str, Any]) -> Printed:
    decimals = source.get("decimals", 0)
    if "low" in source:
        return Printed("range", float(source["low"]), float(source["high"]), source["of"], decimals)
    kind = next(kind for kind in ("count", "mean", "highest", "value") if kind in source)
    return Printed(kind, float(source[kind]), float(source[kind]), source.get("of", 1), decimals)
