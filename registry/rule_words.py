"""A rule in plain words, beside its text: what it asks for, for people.

The words are an explanation and decide nothing. Different rules have different
words: every name, number and grouping of the text is in them.
"""

from __future__ import annotations

from decimal import Decimal

from registry.rule_tree import Node, tree

_COMPARED = {
    "<": "is below",
    "<=": "is at most",
    ">": "is above",
    ">=": "is at least",
    "==": "equals",
    "!=": "differs from",
}
_COUNTED = {
    "<": "fewer than",
    "<=": "at most",
    ">": "more than",
    ">=": "at least",
    "==": "exactly",
    "!=": "not exactly",
}
_LISTS = {
    "all": "every {} run is {}",
    "any": "some {} run is {}",
    "count": "the number of {} runs that are {}",
}
_REFERENCES = {
    "lambda_ref_per_s": "lambda_ref",
    "lambda_per_s": "lambda",
    "all_miss_prefill_tokens_per_s": "the all-miss prefill rate",
    "pool_tokens": "the KV pool in tokens",
    "session_prompt_tokens": "the expected prompt tokens of a whole session",
    "cap": "the cap of the arm's gate",
}
_READINGS = {
    "followup_hit_fraction": "follow-up hit fraction",
    "uncached_prefill_tokens_per_s": "uncached prefill tokens per second",
    "max_hit_300s": "highest hit fraction of any 300 s",
    "recovered_s": "time of recovery in seconds",
}
_UNITS = (
    ("_tokens_per_s", " tokens per second"),
    ("_per_s", " per second"),
    ("_tokens", " tokens"),
    ("_s", " in seconds"),
)


REFERENCE_NOTE = (
    "lambda_ref is the rate of sessions that the cell completes when every turn misses, from the calibration; "
    "lambda is the run's own arrival rate; the all-miss prefill rate is the calibration's, in tokens per second."
)


def plain_words(text: str) -> str:
    """A run rule or a rate rule in words; RuleError where it is none."""
    return _said(tree(text))


def reading_words(name: str) -> str:
    """The name of a reading in words, its unit too."""
    if name in _READINGS:
        return _READINGS[name]
    stem, _, percentile = name.partition("_p") if name[-2:].isdigit() else (name, "", "")
    for suffix, unit in _UNITS:
        if stem.endswith(suffix):
            stem = stem.removesuffix(suffix) + unit
            break
    return stem.replace("_", " ") + (f" (percentile {percentile})" if percentile else "")


def _said(node: Node) -> str:
    if node.kind == "between":
        return _between(node)
    if node.kind == "call":
        return _called(node)
    if node.kind == "before":
        return f"{'it is not so that' if node.text == '!' else 'minus'} {_grouped(node.parts[0])}"
    return _named(node.text) if node.kind == "name" else node.text


def _between(node: Node) -> str:
    left, right = node.parts
    if node.text in ("&&", "||"):
        word = "and" if node.text == "&&" else "or"
        return f"{_part(left, node.text)}, {word} {_part(right, node.text, last=True)}"
    if not node.comparison:
        word = {"+": "plus", "-": "minus", "*": "times"}[node.text]
        return f"{_part(left, node.text)} {word} {_part(right, node.text, last=True)}"
    if left.kind == "call" and left.text == "count" and right.kind == "number":
        return f"{_COUNTED[node.text]} {right.text} {_runs('{} runs are {}', left.parts[0])}"
    return _within(node) or f"{_side(left)} {_COMPARED[node.text]} {_side(right)}"


def _within(node: Node) -> str | None:
    """`abs(x - y) <= 0.15 * y`, as people say it."""
    left, right = node.parts
    if node.text not in ("<", "<=") or (left.kind, left.text) != ("call", "abs"):
        return None
    inside, times = left.parts[0], right
    if (inside.kind, inside.text, times.kind, times.text) != ("between", "-", "between", "*"):
        return None
    share, base = times.parts
    if share.kind != "number" or base != inside.parts[1]:
        return None
    word = "at most" if node.text == "<=" else "less than"
    percent = f"{(100 * Decimal(share.text)).normalize():f}%"
    return f"{_side(inside.parts[0])} differs from {_side(base)} by {word} {percent}"


def _part(part: Node, sign: str, *, last: bool = False) -> str:
    """A side of `sign`, in brackets unless it joins the same way or is simple."""
    same = part.kind == "between" and part.text == sign and not last
    condition = sign in ("&&", "||") and part.comparison
    return _said(part) if same or condition else _grouped(part)


def _side(part: Node) -> str:
    """A side of a comparison: arithmetic cannot be mistaken there for more."""
    conditions = part.kind == "between" and (part.comparison or part.text in ("&&", "||"))
    return f"({_said(part)})" if conditions else _said(part)


def _grouped(part: Node) -> str:
    return f"({_said(part)})" if part.kind == "between" else _said(part)


def _called(node: Node) -> str:
    if node.text in _LISTS:
        return _runs(_LISTS[node.text], node.parts[0])
    if node.text == "abs":
        return f"the size, without its sign, of {_grouped(node.parts[0])}"
    which = "smaller" if node.text == "min" else "larger"
    return f"the {which} of {' and '.join(_grouped(part) for part in node.parts)}"


def _runs(form: str, name: Node) -> str:
    arm, _, verdict = name.text.partition(".")
    return form.format(arm, f"\N{LEFT DOUBLE QUOTATION MARK}{verdict}\N{RIGHT DOUBLE QUOTATION MARK}")


def _named(name: str) -> str:
    head, *rest = name.split(".")
    if not rest:
        return _REFERENCES.get(head, head)
    if head == "predicted":
        return f"the predicted value {'.'.join(rest)}"
    if len(rest) != 2:
        return name
    window, reading = rest
    whose = "" if head == "run" else f" of the {head} run of the same rate and seed"
    return f"the {reading_words(reading)}{whose} in the window {window}"
