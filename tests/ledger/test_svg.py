"""Figures in the page: matplotlib's look in the page's colours, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cli.render import pictures
from ledger.page.figure import Figure
from ledger.page.svg import COLOURS, themed
from registry.errors import RecordError
from tests.ledger.made import figure, registered

HEAD = (
    '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"\n'
    '  "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n'
)
OPEN = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'


def made(inside: str, head: str = HEAD) -> Figure:
    return Figure("name", "<b>Title</b>", "seen \u202e", f"{head}{OPEN}{inside}</svg>", "a\n1\n")


def inside(text: str) -> str:
    return themed(made(text), 1).partition("</desc>")[2].removesuffix("</svg>")


@pytest.fixture(scope="module")
def drawn() -> Figure:
    return figure(registered())


def test_a_drawn_figure_keeps_its_lines_and_loses_its_styles(drawn: Figure) -> None:
    text = themed(drawn, 3)
    assert "style" not in text and "<style" not in text and "xlink" not in text and "font-family" not in text
    assert text.count('class="s-red"') >= 6 and 'class="f-ground"' in text
    assert len(text) < 0.7 * len(drawn.svg)
    assert text == themed(drawn, 3)


def test_ids_are_the_figure_s_own_and_every_reference_has_its_target(drawn: Figure) -> None:
    one, two = (set(re.findall(r' id="([^"]+)"', themed(drawn, place))) for place in (1, 2))
    assert one and not one & two
    text = themed(drawn, 1)
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', text)) <= one
    assert len(re.findall(r' id="', text)) == len(one)


def test_every_colour_of_our_pictures_is_the_page_s() -> None:
    names = ("BLUE", "ORANGE", "GREEN", "RED", "PURPLE", "SKY", "GREY")
    assert {getattr(pictures, name): name.lower() for name in names}.items() <= COLOURS.items()


def test_title_and_text_are_for_those_who_do_not_see_it() -> None:
    text = themed(made("<g/>"), 7)
    assert 'role="img" aria-labelledby="f7-title f7-text"' in text
    assert "&lt;b&gt;Title&lt;/b&gt;</title>" in text and "seen U+202E</desc>" in text


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '<foreignObject><b xmlns="http://www.w3.org/1999/xhtml">x</b></foreignObject>',
        '<a xlink:href="https://example.org"><path d="M 0 0"/></a>',
        "<style>path { fill: url(https://example.org) }</style>",
        '<animate attributeName="href" to="javascript:alert(1)"/>',
        "<metadata>x</metadata>",
        "<!-- --><b>x</b>",
    ],
)
def test_what_is_no_drawing_is_dropped(hostile: str) -> None:
    assert inside(f'{hostile}<path d="M 0 0"/>') == '<path d="M0 0"/>'


@pytest.mark.parametrize(
    ("element", "kept"),
    [
        ('<path d="M 1 2" onload="alert(1)"/>', '<path d="M1 2"/>'),
        ('<use xlink:href="https://example.org#a" x="1"/>', '<use x="1"/>'),
        ('<path style="fill: url(https://example.org/#a); stroke: #0072B2"/>', '<path class="s-blue"/>'),
        ('<path style="background: red; opacity: 0.5"/>', '<path opacity="0.5"/>'),
        ('<g id="figure_1"><g id="a"><path d="M 0.04 -0.04 L 1 1 L 2.26 2 z"/></g></g>', '<path d="M0 0L1 1 2.3 2z"/>'),
        ('<g clip-path="url(#a)"/>', ""),
        ('<text x="1">&lt;b&gt; \u202e</text>', '<text x="1">&lt;b&gt; U+202E</text>'),
        ('<path d="M 0 0" transform="expression(1;2)"/>', '<path d="M0 0"/>'),
    ],
)
def test_only_what_draws_is_kept_of_an_element(element: str, kept: str) -> None:
    assert inside(element) == kept


def test_what_matplotlib_would_not_write_is_refused() -> None:
    bomb = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    for wrong in (made("<text>&b;</text>", bomb), made("<g>"), made('<image href="data:image/png;base64,"/>')):
        with pytest.raises(RecordError):
            themed(wrong, 1)
    with pytest.raises(RecordError):
        themed(replace(made(""), svg=OPEN.replace("0 0 9 9", "0&quot;") + "</svg>"), 1)
