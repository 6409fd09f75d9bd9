"""The text of a rule: tokens against an allow-list, and evaluation by CEL.

CEL alone is not total: an undefined name beside `|| true`, an empty list's
`all` and `NaN != 1.0` are all true, and 3/2 is 1. What passes here can only
compare, add, multiply and call our six functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cel

from registry.errors import RuleError

RUN_FUNCTIONS = {"abs": 1, "min": 2, "max": 2}
RATE_FUNCTIONS = {"count": 1, "all": 1, "any": 1}

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"
    r"|(?P<number>(?:[0-9]+\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<operator>&&|\|\||<=|>=|==|!=|[-+*(),!<>]))"
)
_HINTS = {
    "/": "rules do not divide (3/2 is 1 in CEL): multiply by a decimal, 0.5 * x",
    "?": "rules have no ternary: use && and ||",
    '"': "rules have no text values",
    "'": "rules have no text values",
    "[": "rules have no lists of their own",
    "{": "rules have no maps of their own",
    "%": "rules have no remainder",
}
_WORDS = ("true", "false", "null", "in", "has")


@dataclass(frozen=True)
class Token:
    """One token of a rule; `kind` is name, function, number or operator."""

    kind: str
    text: str


def tokenise(text: str, functions: Mapping[str, int], where: str) -> list[Token]:
    """The rule's tokens; RuleError at the first one outside the language."""
    tokens: list[Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if not match:
            rest = text[position:].lstrip()
            raise RuleError(
                "the rule leaves the rule language",
                where=where,
                value=rest[:30],
                remedy=_HINTS.get(rest[0], "allowed: names, numbers, + - * ( ) , ! && || < <= > >= == !="),
            )
        position = match.end()
        kind = str(match.lastgroup)
        called = kind == "name" and text[position:].lstrip().startswith("(")
        tokens.append(Token("function" if called else kind, match[kind]))
    _check_calls(tokens, functions, where)
    return tokens


def _check_calls(tokens: list[Token], functions: Mapping[str, int], where: str) -> None:
    for token in tokens:
        if token.kind == "function" and token.text not in functions:
            raise RuleError("unknown function", where=where, value=token.text, remedy=f"one of: {', '.join(functions)}")
        if token.kind == "name" and token.text in _WORDS:
            raise RuleError(
                "not in the rule language", where=where, value=token.text, remedy="compare readings with numbers"
            )


def names_of(tokens: list[Token]) -> tuple[str, ...]:
    """The dotted names of a rule, each once, in order of appearance."""
    return tuple(dict.fromkeys(token.text for token in tokens if token.kind == "name"))


@lru_cache(maxsize=512)
def program(text: str, where: str) -> Any:
    """The compiled CEL program of an already tokenised text."""
    try:
        return cel.compile(text)
    except Exception as error:
        first = str(error).splitlines()[0]
        raise RuleError(f"the rule does not parse: {first}", where=where, value=text) from None


def evaluate(text: str, values: Mapping[str, Any], where: str) -> bool:
    """Evaluate a checked rule; RuleError unless the result is a bool."""
    result = compute(text, values, where)
    if not isinstance(result, bool):
        raise RuleError("the rule gives no true or false", where=where, value=text, remedy="compare: ... >= ...")
    return result


def compute(text: str, values: Mapping[str, Any], where: str) -> Any:
    """The value of a CEL text over dotted names; RuleError where it has none."""
    context = cel.Context()
    for name, variable in _nested(values).items():
        context.add_variable(name, variable)
    for name, function in _FUNCTIONS.items():
        context.add_function(name, function)
    try:
        return program(text, where).execute(context)
    except Exception as error:
        raise RuleError(
            f"the rule cannot be evaluated: {str(error).split(':')[0]}",
            where=where,
            value=text,
            remedy="readings are decimals: write 2.0 * x, not 2 * x; compare like with like",
        ) from None


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for dotted, value in values.items():
        *parents, last = dotted.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return tree


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda x: abs(x),
    "min": lambda x, y: min(x, y),
    "max": lambda x, y: max(x, y),
    "count": lambda verdicts: sum(1 for verdict in verdicts if verdict),
    "all": lambda verdicts: all(verdicts),
    "any": lambda verdicts: any(verdicts),
}
