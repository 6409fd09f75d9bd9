"""Answers over HTTP, and errors in the form of GitHub's API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One HTTP answer; `body` is sent piece by piece."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: Iterable[bytes]

    @property
    def status_line(self) -> str:
        """`404 Not Found`."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"


def whole(status: int, kind: str, data: bytes, *headers: tuple[str, str]) -> Answer:
    """An answer whose body is at hand. Nothing of it may be kept by caches."""
    fixed = (("Content-Type", kind), ("Content-Length", str(len(data))), ("Cache-Control", "no-store"))
    return Answer(status, (*fixed, ("X-Content-Type-Options", "nosniff"), *headers), [data])


def text(status: int, words: str, *headers: tuple[str, str]) -> Answer:
    """Plain text for people, and for git, which shows it."""
    return whole(status, "text/plain; charset=utf-8", words.encode(), *headers)


def json_answer(value: Any, *headers: tuple[str, str]) -> Answer:
    """A JSON value."""
    return whole(200, "application/json; charset=utf-8", json.dumps(value).encode(), *headers)


class Refused(Exception):
    """A request that gets no more than a status and one sentence."""

    def __init__(self, status: int, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers

    def answer(self, *, as_json: bool, documentation_url: str) -> Answer:
        """GitHub's `basic-error` as JSON, else a line of text."""
        if not as_json:
            return text(self.status, f"{self.message}\n", *self.headers)
        value = {"message": self.message, "documentation_url": documentation_url, "status": str(self.status)}
        kind = "application/json; charset=utf-8"
        return whole(self.status, kind, json.dumps(value).encode(), *self.headers)
