"""What kind of value each part of a rule has, settled before anything runs.

CEL looks at kinds only where it evaluates, and forgets an error beside
`|| true`; so a rule could carry a part that never works. Here every part must
fit: decimals with decimals, integers with integers, verdicts with && || !.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from registry.errors import RuleError
from registry.rule_text import Token

DECIMAL, INTEGER, VERDICT, LIST = "a decimal", "a whole number", "true or false", "a list of verdicts"
_NUMBERS = (DECIMAL, INTEGER)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_MAX_DEPTH = 32
_LIKE_WITH_LIKE = "readings are decimals: write 2.0 * x, not 2 * x; counts are whole numbers; compare like with like"


def check_types(tokens: list[Token], names_are: str, functions: Mapping[str, int], where: str) -> None:
    """Raise RuleError unless the rule gives a verdict, each part of it fitting.

    `names_are` is the kind of every dotted name. A text that is no expression
    is left to CEL's parser.
    """
    _check_depth(tokens, where)
    checker = _Checker(tokens, names_are, functions, where)
    kind = checker.either()
    if checker.position == len(tokens) and kind not in (VERDICT, None):
        raise checker.error("the rule gives no true or false", "compare: ... >= ...")


def _check_depth(tokens: list[Token], where: str) -> None:
    depth = signs = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        signs = signs + 1 if token.text in ("!", "-") else 0
        if max(depth, signs) > _MAX_DEPTH:
            raise RuleError("the rule is too deeply nested", where=where, remedy=f"at most {_MAX_DEPTH} levels")


class _Checker:
    """One recursive descent; a kind is None where the text is no expression."""

    def __init__(self, tokens: list[Token], names_are: str, functions: Mapping[str, int], where: str) -> None:
        self.position = 0
        self._tokens = tokens
        self._names_are = names_are
        self._functions = functions
        self._where = where

    def error(self, what: str, remedy: str) -> RuleError:
        text = " ".join(token.text for token in self._tokens[: self.position])
        return RuleError(what, where=self._where, value=text, remedy=remedy)

    def _next(self, *texts: str) -> str | None:
        if self.position < len(self._tokens) and (token := self._tokens[self.position]).text in texts:
            self.position += 1
            return token.text
        return None

    def either(self) -> str | None:
        return self._joined("||", lambda: self._joined("&&", self._compared))

    def _joined(self, sign: str, part: Callable[[], str | None]) -> str | None:
        kind = part()
        while self._next(sign):
            kinds = {kind, part()}
            if not kinds <= {VERDICT, None}:
                raise self.error(f"{sign} joins what is not true or false", "compare first: x > 0.5 && y > 0.5")
            kind = VERDICT
        return kind

    def _compared(self) -> str | None:
        kind = self._calculated("+-", lambda: self._calculated("*", self._single))
        if not (sign := self._next(*_COMPARISONS)):
            return kind
        other = self._calculated("+-", lambda: self._calculated("*", self._single))
        allowed = (*_NUMBERS, VERDICT) if sign in ("==", "!=") else _NUMBERS
        if None not in (kind, other) and (kind != other or kind not in allowed):
            raise self.error(f"{kind} {sign} {other} is no comparison", _LIKE_WITH_LIKE)
        if self._next(*_COMPARISONS):
            raise self.error("comparisons do not chain", "write x > 0.1 && x < 0.5")
        return VERDICT

    def _calculated(self, signs: str, part: Callable[[], str | None]) -> str | None:
        kind = part()
        while sign := self._next(*signs):
            other = part()
            if None not in (kind, other) and (kind != other or kind not in _NUMBERS):
                raise self.error(f"{kind} {sign} {other} has no value", _LIKE_WITH_LIKE)
        return kind

    def _single(self) -> str | None:
        if sign := self._next("!", "-"):
            kind = self._single()
            if kind is not None and (kind == VERDICT if sign == "-" else kind != VERDICT):
                raise self.error(f"{sign} before {kind}", "write !(x > 0.5), -x")
            return kind
        if self._next("("):
            kind = self.either()
            return kind if self._next(")") else None
        if self.position == len(self._tokens) or self._tokens[self.position].kind == "operator":
            return None
        token = self._tokens[self.position]
        self.position += 1
        if token.kind == "function":
            return self._called(token.text)
        if token.kind == "number":
            return INTEGER if token.text.isdigit() else DECIMAL
        return self._names_are

    def _called(self, name: str) -> str | None:
        self._next("(")
        if self._next(")"):
            raise self.error(f"{name} of nothing", "give each function what it needs")
        kinds = [self.either()]
        while self._next(","):
            kinds.append(self.either())
        if not self._next(")") or None in kinds:
            return None
        if len(kinds) != self._functions[name]:
            raise self.error(f"{name} takes {self._functions[name]} value(s)", "give each function what it needs")
        takes = (LIST,) if self._names_are == LIST else _NUMBERS
        if len(set(kinds)) != 1 or kinds[0] not in takes:
            raise self.error(f"{name} of {', '.join(map(str, kinds))}", _LIKE_WITH_LIKE)
        return {"count": INTEGER, "all": VERDICT, "any": VERDICT}.get(name, kinds[0])
