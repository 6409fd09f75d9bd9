"""A rule as a tree: for those who explain it. What decides is CEL's own reading.

The same descent as `rule_types`, over tokens that were checked where the rule
was compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from registry.errors import RuleError
from registry.rule_text import RATE_FUNCTIONS, RUN_FUNCTIONS, Token, tokenise

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_STRENGTH = {"||": 1, "&&": 2, **dict.fromkeys(COMPARISONS, 3), "+": 4, "-": 4, "*": 5}
_SIGN = 6


@dataclass(frozen=True)
class Node:
    """A name or number (no `parts`), a function's call, a sign before one part,
    or an operator between two.
    """

    kind: str
    text: str
    parts: tuple[Node, ...] = ()

    @property
    def comparison(self) -> bool:
        """Whether it compares two values."""
        return self.kind == "between" and self.text in COMPARISONS

    def __str__(self) -> str:
        """The node as text of the language, with no more brackets than it needs."""
        if self.kind == "call":
            return f"{self.text}({', '.join(map(str, self.parts))})"
        if self.kind == "before":
            return self.text + self._inside(self.parts[0], _SIGN)
        if self.kind == "between":
            own = _STRENGTH[self.text]
            left, right = self.parts
            return f"{self._inside(left, own + self.comparison)} {self.text} {self._inside(right, own + 1)}"
        return self.text

    @staticmethod
    def _inside(part: Node, least: int) -> str:
        strength = {"between": _STRENGTH.get(part.text, _SIGN), "before": _SIGN}.get(part.kind, _SIGN + 1)
        return str(part) if strength >= least else f"({part})"

    def comparisons(self) -> Iterator[Node]:
        """The comparisons of numbers in it, from left to right."""
        inner = [found for part in self.parts for found in part.comparisons()]
        if self.comparison and not inner:
            yield self
        yield from inner


def tree(text: str, where: str = "a rule") -> Node:
    """The tree of a rule of runs or of rates; RuleError where it is none."""
    reader = _Reader(tokenise(text, {**RUN_FUNCTIONS, **RATE_FUNCTIONS}, where), where)
    node = reader.either()
    reader.end()
    return node


class _Reader:
    def __init__(self, tokens: list[Token], where: str) -> None:
        self._tokens, self._where, self._position = tokens, where, 0

    def end(self) -> None:
        if self._position < len(self._tokens):
            raise self._error()

    def _error(self) -> RuleError:
        rest = " ".join(token.text for token in self._tokens[self._position :][:8])
        return RuleError("the rule does not parse", where=self._where, value=rest)

    def _next(self, *texts: str) -> str | None:
        if self._position < len(self._tokens) and (token := self._tokens[self._position]).text in texts:
            self._position += 1
            return token.text
        return None

    def either(self) -> Node:
        return self._joined(("||",), lambda: self._joined(("&&",), self._compared))

    def _joined(self, signs: tuple[str, ...], part: Callable[[], Node]) -> Node:
        node = part()
        while sign := self._next(*signs):
            node = Node("between", sign, (node, part()))
        return node

    def _sum(self) -> Node:
        return self._joined(("+", "-"), lambda: self._joined(("*",), self._single))

    def _compared(self) -> Node:
        node = self._sum()
        sign = self._next(*COMPARISONS)
        return Node("between", sign, (node, self._sum())) if sign else node

    def _single(self) -> Node:
        if sign := self._next("!", "-"):
            return Node("before", sign, (self._single(),))
        if self._next("("):
            node = self.either()
            if not self._next(")"):
                raise self._error()
            return node
        if self._position == len(self._tokens) or self._tokens[self._position].kind == "operator":
            raise self._error()
        token = self._tokens[self._position]
        self._position += 1
        return self._called(token.text) if token.kind == "function" else Node(token.kind, token.text)

    def _called(self, name: str) -> Node:
        self._next("(")
        parts = [self.either()]
        while self._next(","):
            parts.append(self.either())
        if not self._next(")"):
            raise self._error()
        return Node("call", name, tuple(parts))
