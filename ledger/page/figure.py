"""A figure for a page: a picture, what it says in words, and the data drawn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`name` is a file name's stem; `text` says what is seen, for who does not see
    it; `svg` is as matplotlib wrote it; `csv` holds what is drawn, its first line
    the columns' names with their units. `registration` is a tag (`reg/e2/v1`),
    None for a figure of the whole study.
    """

    name: str
    title: str
    text: str
    svg: str
    csv: str
    registration: str | None = None
