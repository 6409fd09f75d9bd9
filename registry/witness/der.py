"""A reader of DER elements, for what no library shows (X.690)."""

from __future__ import annotations

from dataclasses import dataclass

MAX_ELEMENTS = 256


@dataclass(frozen=True)
class Element:
    """One element: its tag byte, and where it, its content and its end lie in the data."""

    tag: int
    start: int
    content: int
    end: int


def elements(data: bytes, start: int, end: int) -> list[Element]:
    """The elements side by side between two places; ValueError for anything but DER."""
    found: list[Element] = []
    while start < end:
        element = _element(data, start, end)
        found.append(element)
        if len(found) > MAX_ELEMENTS:
            raise ValueError("too many elements")
        start = element.end
    return found


def inside(data: bytes, element: Element) -> list[Element]:
    """The elements that one contains."""
    return elements(data, element.content, element.end)


def _element(data: bytes, start: int, end: int) -> Element:
    """One element; lengths are definite and as short as can be, tags below 31."""
    if end - start < 2 or data[start] & 0x1F == 0x1F:
        raise ValueError("no element")
    length, content = data[start + 1], start + 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or content + size > end:
            raise ValueError("no length")
        length = int.from_bytes(data[content : content + size], "big")
        content += size
        if length < 0x80 or length >> (8 * (size - 1)) == 0:
            raise ValueError("a length that could be shorter")
    if content + length > end:
        raise ValueError("cut short")
    return Element(data[start], start, content, content + length)
