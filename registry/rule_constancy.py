"""Is a rule able to decide anything? A constant one is refused.

A run rule must take both values over its readings' bounds and both sides of
its thresholds; the rate rule over all lists of verdicts. Thresholds are found
by solving each comparison for each of its readings.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from registry.errors import RuleError
from registry.reading_catalogue import READING_KINDS
from registry.rule import RateRule, RunRule
from registry.rule_text import RATE_FUNCTIONS, RUN_FUNCTIONS, Token, compute, evaluate, tokenise
from registry.rule_work import Work, evaluation_cost

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_GRID = 16
_BISECTIONS = 60
_MAX_TRIALS = 20_000
_MAX_ENTRIES = 2_000_000


def check_run_rule(rule: RunRule, reference: Mapping[str, float], work: Work | None = None) -> None:
    """Raise RuleError if no combination of readings tried changes the verdict.

    `reference` holds every reference value that the rule may name. Trials are
    charged to `work`, and the cheap ones come first; CapExceeded where it is
    spent.
    """
    fixed = {name: float(reference[name]) for name in rule.names if name not in rule.reading_of}
    readings = [name for name in rule.names if name in rule.reading_of]
    trial = _Trial(rule.text, tokenise(rule.text, RUN_FUNCTIONS, rule.where), rule.where, work or Work())
    seen: set[bool] = set()
    for point in itertools.chain(_axes(rule, readings), _crossings(rule, readings, fixed, trial)):
        seen.add(trial.verdict({**fixed, **dict(zip(readings, point, strict=True))}))
        if len(seen) == 2:
            return
    raise RuleError(
        f"the rule is constant: it is always {str(seen.pop()).lower()}",
        where=rule.where,
        value=rule.text,
        remedy="change a threshold so that both verdicts are possible",
    )


def check_rate_rule(rule: RateRule, seeds: int, work: Work | None = None) -> None:
    """Raise RuleError if the rate rule is the same for all verdict lists.

    count, all and any do not see the order of a list, so the number of true
    entries in each list is all that has to be tried: every number, or those
    around the rule's own numbers where they are too many. Trials are charged
    to `work`; CapExceeded where it is spent.
    """
    trial = _Trial(rule.text, tokenise(rule.text, RATE_FUNCTIONS, rule.where), rule.where, work or Work())
    seen: set[bool] = set()
    for point in _count_trials(rule, seeds):
        lists = [[True] * true + [False] * (seeds - true) for true in point]
        seen.add(trial.verdict(dict(zip(rule.names, lists, strict=True))))
        if len(seen) == 2:
            return
    raise RuleError(
        f"the rate rule is constant: it is always {str(seen.pop()).lower()}",
        where=rule.where,
        value=rule.text,
        remedy="name run verdicts: count(BURST.trapped) >= 2",
    )


@dataclass(frozen=True)
class _Trial:
    """A text that is evaluated again and again, each time charged."""

    text: str
    tokens: list[Token]
    where: str
    work: Work

    def verdict(self, values: Mapping[str, Any]) -> bool:
        self.work.spend(evaluation_cost(self.tokens, values), self.where)
        return evaluate(self.text, values, self.where)

    def number(self, values: Mapping[str, Any]) -> float:
        self.work.spend(evaluation_cost(self.tokens, values), self.where)
        return float(compute(self.text, values, self.where))


def _axes(rule: RunRule, readings: list[str]) -> Iterator[tuple[float, ...]]:
    """The middle, the outermost corners, and each reading alone at its ends."""
    for share in (0.5, 0.0, 1.0):
        yield tuple(_at(rule, name, share) for name in readings)
    for moved, share in itertools.product(readings, (0.0, 1.0)):
        yield tuple(_at(rule, name, share if name == moved else 0.5) for name in readings)


def _crossings(
    rule: RunRule, readings: list[str], fixed: Mapping[str, float], trial: _Trial
) -> Iterator[tuple[float, ...]]:
    """Both sides of every threshold: one reading alone, then all combinations."""
    found = {name: set(_bounds(rule, name)) for name in readings}
    shares = [{name: _at(rule, name, share) for name in readings} for share in (0.5, 0.0, 1.0)]
    for difference, name in itertools.product(_differences(trial), readings):
        inside = {token.text for token in difference.tokens} & set(readings)
        if name not in inside:
            continue
        low, high = _bounds(rule, name)
        for values in shares if len(inside) > 1 else shares[:1]:
            for root in _roots(difference, name, low, high, {**fixed, **values}):
                step = max(abs(root), high - low, 1e-300) * 1e-9
                sides = [min(max(x, low), high) for x in (root - step, root, root + step)]
                found[name].update(sides)
                yield from (tuple({**others, name: x}.values()) for others in shares for x in sides)
    yield from _trials([sorted(found[name]) for name in readings])


def _count_trials(rule: RateRule, seeds: int) -> Iterator[tuple[int, ...]]:
    names, most = len(rule.names), _MAX_ENTRIES // (seeds * max(len(rule.names), 1))
    yield from itertools.product((0, seeds), repeat=names)
    choices = list(range(seeds + 1))
    if (seeds + 1) ** names > most:
        written = [int(t.text) for t in tokenise(rule.text, RATE_FUNCTIONS, rule.where) if t.text.isdigit()]
        near = {n + step for n in (0, seeds // 2, seeds, *written) for step in (-1, 0, 1)}
        choices = sorted(near & set(choices))
    yield from itertools.islice(itertools.product(choices, repeat=names), most)


def _trials(candidates: list[list[float]]) -> Iterator[tuple[float, ...]]:
    """Every combination, or a fixed random sample where they are too many."""
    if math.prod(map(len, candidates)) <= _MAX_TRIALS:
        yield from itertools.product(*candidates)
        return
    choose = random.Random(0).choice  # noqa: S311 (a fixed sample, not a secret)
    for _ in range(_MAX_TRIALS):
        yield tuple(choose(values) for values in candidates)


def _bounds(rule: RunRule, dotted: str) -> tuple[float, float]:
    kind = READING_KINDS[rule.reading_of[dotted]]
    return kind.low, kind.high


def _at(rule: RunRule, dotted: str, share: float) -> float:
    low, high = _bounds(rule, dotted)
    return low + share * (high - low)


def _roots(difference: _Trial, name: str, low: float, high: float, values: Mapping[str, float]) -> Iterator[float]:
    """Zeros of the difference in one reading: sign changes on a grid, bisected."""

    def at(x: float) -> float:
        return difference.number({**values, name: x})

    zero = [0.0] if low < 0 < high else []
    spread = [low + (high - low) * i / _GRID for i in range(_GRID + 1)]
    small = [sign * step * (high - low) * 10.0**-k for k in range(1, 13) for step in (1, 3) for sign in (1, -1)]
    points = sorted({x for x in [*zero, *spread, *small] if low <= x <= high})
    heights = [at(x) for x in points]
    for x, y, at_x, at_y in zip(points, points[1:], heights, heights[1:], strict=False):
        if at_x == 0:
            yield x
        elif (at_x < 0) != (at_y < 0):
            yield from _bisect(at, x, y, at_x < 0)
    if heights[-1] == 0:
        yield points[-1]


def _bisect(at: Callable[[float], float], x: float, y: float, negative: bool) -> tuple[float, float]:
    """The two neighbours between which the sign changes; either may be the zero."""
    for _ in range(_BISECTIONS):
        middle = (x + y) / 2
        if (at(middle) < 0) == negative:
            x = middle
        else:
            y = middle
    return x, y


def _differences(trial: _Trial) -> list[_Trial]:
    """Left minus right of every comparison of numbers in a rule, and what stands in
    an abs: a band around its zero can be narrower than the grid.
    """
    places = [i for i, token in enumerate(trial.tokens) if token.kind == "operator" and token.text in _COMPARISONS]
    trial.work.spend(len(places) * len(trial.tokens), trial.where)
    sides = [(_side(trial.tokens, i, -1), _side(trial.tokens, i, +1)) for i in places]
    texts = [f"({left}) - ({right})" for left, right in sides if not {*"<>=!&|"} & {*left, *right}]
    texts += [_side(trial.tokens, i + 1, +1) for i, token in enumerate(trial.tokens) if token.text == "abs"]
    return [_Trial(text, tokenise(text, RUN_FUNCTIONS, trial.where), trial.where, trial.work) for text in texts]


def _side(tokens: list[Token], index: int, step: int) -> str:
    """The arithmetic on one side of a comparison, up to the next && || ! ( )."""
    opening, closing = ("(", ")") if step > 0 else (")", "(")
    depth, taken = 0, []
    position = index + step
    while 0 <= position < len(tokens):
        token = tokens[position]
        if token.text == closing and depth == 0:
            break
        if depth == 0 and token.kind == "operator" and token.text in ("&&", "||", "!", ",", *_COMPARISONS):
            break
        depth += (token.text == opening) - (token.text == closing)
        taken.append(token.text)
        position += step
    return " ".join(taken if step > 0 else reversed(taken))
