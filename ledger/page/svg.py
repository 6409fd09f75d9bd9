"""Matplotlib's SVG as a part of a page: the page's colours, no style attribute.

What is not on the lists below is dropped, so that nothing of a figure can load,
run or reach out, whatever text a study put in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from markupsafe import Markup, escape

from ledger.page.figure import Figure
from registry.errors import RecordError
from registry.plain_text import plain

COLOURS = {
    "#0072b2": "blue",
    "#e69f00": "orange",
    "#009e73": "green",
    "#d55e00": "red",
    "#cc79a7": "purple",
    "#56b4e9": "sky",
    "#555555": "grey",
    "#ffffff": "ground",
    "#000000": "text",
    "#b0b0b0": "line",
    "#cccccc": "line",
    "#d3d3d3": "line",
}
"""Colours of our pictures that the page has its own of, light and dark."""

MAX_BYTES = 4_000_000
_ELEMENTS = frozenset(("g", "path", "defs", "clipPath", "rect", "circle", "use", "text", "tspan"))
_GEOMETRY = frozenset(("d", "x", "y", "r", "cx", "cy", "width", "height", "transform"))
_LOOK = frozenset((
    "fill", "stroke", "opacity", "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray",
    "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "fill-rule", "font-size", "font-weight", "font-style",
    "text-anchor",
))  # fmt: skip
_HEAD = re.compile(r"\A<\?xml[^>]*\?>\s*<!DOCTYPE svg PUBLIC [^\[>]*>\s*")
_VALUE = re.compile(r"[\w#.,%+() \n-]*", re.ASCII)
_REFERENCE = re.compile(r"(?:url\()?#([\w.-]+)\)?", re.ASCII)
_PATH_WORD = re.compile(r"[A-Za-z]|-?[0-9.]+(?:e-?[0-9]+)?")


def themed(figure: Figure, place: int) -> Markup:
    """The figure as an inline picture; `place` among the page's figures makes
    its ids its own. RecordError for what matplotlib would not have written.
    """
    root = _parsed(figure)
    names = {name: f"f{place}-{number}" for number, name in enumerate(_referenced(root))}
    box = root.get("viewBox", "")
    if not _VALUE.fullmatch(box):
        raise _foreign(figure, box)
    head = Markup(
        '<svg viewBox="{box}" role="img" aria-labelledby="f{place}-title f{place}-text" stroke-linejoin="round">'
        '<title id="f{place}-title">{title}</title><desc id="f{place}-text">{text}</desc>'
    ).format(box=box, place=place, title=plain(figure.title), text=plain(figure.text))
    drawn = "".join(_written(child, names, figure) for child in root)
    return head + Markup(drawn) + Markup("</svg>")  # noqa: S704 (every value in it is escaped below)


def _parsed(figure: Figure) -> ElementTree.Element:
    """The tree, of a text without a document type of its own: nothing to expand."""
    text = _HEAD.sub("", figure.svg, count=1)
    if len(text) > MAX_BYTES or "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise _foreign(figure, text[:40])
    try:
        return ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        raise _foreign(figure, str(error)) from None


def _foreign(figure: Figure, value: str) -> RecordError:
    return RecordError("not a figure as matplotlib writes it", where=figure.name, value=value)


def _referenced(root: ElementTree.Element) -> list[str]:
    """The ids that something in the figure points at, in order."""
    found = {}
    for element in root.iter():
        for name, value in element.attrib.items():
            if _local(name) in ("href", "clip-path") and (match := _REFERENCE.fullmatch(value)):
                found[match[1]] = True
    return list(found)


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]


def _written(element: ElementTree.Element, names: dict[str, str], figure: Figure) -> str:
    kind = _local(element.tag)
    if kind == "image":
        raise RecordError("a figure of the page is drawn in lines, not in pixels", where=figure.name)
    if kind not in _ELEMENTS:
        return ""
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in _attributes(element, names))
    inside = _text(element.text, kind)
    inside += "".join(_written(child, names, figure) + _text(child.tail, kind) for child in element)
    if kind in ("g", "defs") and not (inside and (attributes or kind == "defs")):
        return inside
    return f"<{kind}{attributes}>{inside}</{kind}>" if inside else f"<{kind}{attributes}/>"


def _text(text: str | None, inside: str) -> str:
    return str(escape(plain(text))) if text and inside in ("text", "tspan") else ""


def _attributes(element: ElementTree.Element, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What stays of an element's attributes, its style as attributes and classes."""
    given = {_local(name): value for name, value in element.attrib.items()}
    if given.get("id") in names:
        yield "id", names[given["id"]]
    for name, form in (("href", "#{}"), ("clip-path", "url(#{})")):
        match = _REFERENCE.fullmatch(given.get(name, ""))
        if match and match[1] in names:
            yield name, form.format(names[match[1]])
    for name in sorted(given.keys() & _GEOMETRY):
        if _VALUE.fullmatch(given[name]):
            yield name, _short(given[name]) if name == "d" else given[name]
    yield from _look(given)


def _look(given: dict[str, str]) -> Iterator[tuple[str, str]]:
    pairs = (part.partition(":")[::2] for part in given.get("style", "").split(";"))
    style = {name.strip(): value.strip() for name, value in pairs}
    classes = []
    for name in sorted(style.keys() & _LOOK):
        value = style[name]
        colour = COLOURS.get(value.lower()) if name in ("fill", "stroke") else None
        if colour:
            classes.append(f"{name[0]}-{colour}")
        elif _VALUE.fullmatch(value):
            yield name, value
    if classes:
        yield "class", " ".join(classes)


def _short(path: str) -> str:
    """A path to a tenth of a unit, which is less than a pixel, and without what
    may be left out.
    """
    words: list[str] = []
    command = ""
    for word in _PATH_WORD.findall(path):
        if not word.isalpha():
            words.append(_tenth(float(word)))
        elif word != command or word not in "LCQ":
            words.append(word)
            command = word
    return re.sub(r" ?([A-Za-z]) ?", r"\1", " ".join(words))


def _tenth(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if abs(number) >= 0.05 else "0"
