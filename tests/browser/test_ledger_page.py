"""evidence/index.html in a browser: readable, quiet, with and without its script, on paper."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.document import ledger_document
from ledger.page.figure import Figure
from ledger.page.ledger_page import data_files, ledger_page
from registry.registration import Registration
from tests.browser.conftest import Opened, accessibility
from tests.ledger.made import e2, figure, proof, registered, report

Open = Callable[..., Opened]
HOSTILE = '</script><img src=x onerror="document.title=1"><b style="color:red">b</b>\u202e\u2066 ' + "long" * 300


@pytest.fixture(scope="module")
def registration() -> Registration:
    return registered()


@pytest.fixture(scope="module")
def drawn(registration: Registration) -> Figure:
    return figure(registration)


@pytest.fixture(scope="module")
def document(registration: Registration) -> dict[str, Any]:
    """A study with a passed, a failed and an incomplete registration."""
    again = e2() | {"title": "The same again"}
    again["rule"]["runs"]["NOBURST"]["good"] = "run.judged.followup_hit_fraction >= 0.8"
    second = proof(registered(again, 2, supersedes=registration.digest), trapped=False)
    third = proof(registered(e2() | {"id": "third", "title": "Not finished"}), missing=5)
    return json.loads(json.dumps(ledger_document(report(proof(registration), second, third))))


@pytest.fixture(scope="module")
def file(document: dict[str, Any], drawn: Figure, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    of_all = dataclasses.replace(drawn, name="all", title="Of the whole study", registration=None)
    path.write_text(ledger_page(document, [of_all, drawn]), encoding="utf-8")
    return path


def test_the_first_screen_answers(file: Path, opened: Open) -> None:
    found = opened(file)
    assert found.page.title() == "Evidence ledger of a study: 3 proofs, 0 failures"
    answers = dict(
        zip(*(found.page.locator(f".tile {part}").all_inner_texts() for part in ("h2", ".answer")), strict=True)
    )
    assert answers["Promised"] == "3 registrations"
    assert answers["When, by whose clock"] == "2026-01-31 12:00:00 UTC"
    assert answers["What came out"] == "1 passed, 1 failed, 1 not decidable"
    assert answers["What failed"] == "Nothing"
    lines = found.page.locator(".tile li").all_inner_texts()
    assert "3 registered, 1 passed, 1 failed, 1 not decidable, under 2 different rules: e2, third" in lines
    assert "3 pushes by the clock of the local witness: the author's word" in lines
    assert "5 registered runs missing" in lines and "anything about a GPU: runs here are simulated" in lines
    last = found.page.locator(".tile").last.bounding_box()
    assert last is not None and last["y"] + last["height"] < 900
    assert found.page.locator("table.overview").bounding_box() is not None
    found.assert_quiet()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_it_is_quiet_and_accessible(drawn: Figure, opened: Open, tmp_path: Path, width: int, dark: bool) -> None:
    """A short page: axe-core looks at every element, and so at every kind of element."""
    source = e2()
    source["design"] |= {"rates": [1.35], "seeds": {"values": [0], "binding": "beacon"}}
    source["rule"]["rate"] = "all(BURST.trapped) && all(NOBURST.good) && all(CAPPED.recovered)"
    source["predictors"] = [p for p in source["predictors"] if p["rate"] == 1.35]
    again = source | {"title": "The same again", "claim": "pre-registered"}
    first = registered(source)
    second = registered(again, 2, supersedes=first.digest)
    document = ledger_document(report(proof(first), proof(second, missing=1), log_problems=("rewritten",)))
    small = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text x="1" y="5">a</text></svg>'
    figures = [dataclasses.replace(drawn, svg=small, registration=tag) for tag in (None, "reg/e2/v1")]
    file = tmp_path / "index.html"
    file.write_text(ledger_page(document, figures), encoding="utf-8")
    found = opened(file, width=width, dark=dark)
    found.page.locator("#open-all").click()
    assert found.page.locator("details.entry:not([open])").count() == 0
    assert accessibility(found.page) == []
    found.assert_quiet()


@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_no_wider_than_the_screen(file: Path, opened: Open, width: int) -> None:
    found = opened(file, width=width)
    found.page.locator("#open-all").click()
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    found.assert_quiet()


def shown(found: Opened) -> list[str]:
    return [text.split()[0] for text in found.page.locator("details.entry:visible h3").all_inner_texts()]


def test_the_filter_works_by_keyboard(file: Path, opened: Open) -> None:
    found = opened(file)
    assert shown(found) == ["reg/e2/v1", "reg/e2/v2", "reg/third/v1"]
    found.page.keyboard.press("Tab")
    found.page.keyboard.press("Enter")
    found.page.keyboard.press("Tab")
    found.page.keyboard.type("same AGAIN")
    assert shown(found) == ["reg/e2/v2"]
    assert found.page.locator("tr[data-tag]:visible").count() == 1
    assert found.page.locator("#shown").inner_text() == "1 of 3 proofs shown"
    found.page.keyboard.press("Enter")
    assert shown(found) == ["reg/e2/v2"]
    found.page.locator("#find").fill("")
    found.page.locator("#by-verdict").select_option("FAIL")
    assert shown(found) == ["reg/e2/v2"]
    found.page.locator("#by-status").select_option("registered")
    found.page.locator("#by-verdict").select_option("NOT DECIDABLE")
    assert shown(found) == ["reg/third/v1"]
    found.page.locator("#find").fill("nowhere")
    assert shown(found) == [] and found.page.locator("#none-shown").is_visible()
    found.page.reload()
    assert len(shown(found)) == 3
    found.assert_quiet()


@pytest.mark.parametrize("script", [True, False])
def test_a_proof_opens_from_the_table_and_by_its_summary(file: Path, opened: Open, script: bool) -> None:
    found = opened(file, java_script_enabled=script)
    assert found.page.locator("#controls").is_visible() is script
    entry = found.page.locator("details.entry").nth(1)
    assert not entry.locator(".timeline").is_visible()
    found.page.locator("table.overview a").nth(1).press("Enter")
    assert entry.locator(".timeline").is_visible()
    entry.locator("summary").first.press("Enter")
    assert not entry.locator(".timeline").is_visible()
    found.assert_quiet()


def test_an_open_proof_shows_what_was_promised_beside_what_came_out(file: Path, opened: Open) -> None:
    found = opened(file)
    found.page.locator("#open-all").click()
    first, second, third = (found.page.locator("details.entry").nth(n).inner_text() for n in range(3))
    assert "+3.25 s by one clock" in first and "before what should precede it" in first
    assert "count(BURST.trapped) >= 2" in first and "at least 2 BURST runs are “trapped”" in first
    assert "100 ≤ 1,680 holds" in first and "simulated" in first and "95%" in first
    assert "What changed since reg/e2/v1" in second and "run.judged.followup_hit_fraction >= 0.8" in second
    assert "Missing: NOBURST/1.35/1" in third or "Missing:" in third
    assert "git show reg/e2/v1:registrations/e2.v1.json" in first
    for word in ("Caveats", "Blindness", "Notes", "Attempts", "Predictions against outcomes"):
        assert word in first
    found.assert_quiet()


@pytest.mark.parametrize("script", [True, False])
def test_paper_shows_everything_and_no_controls(file: Path, opened: Open, script: bool) -> None:
    found = opened(file, java_script_enabled=script, dark=True)
    found.page.emulate_media(media="print")
    assert not found.page.locator("#controls").is_visible()
    for place in range(3):
        box = found.page.locator("details.entry .facts").nth(place).bounding_box()
        assert box is not None and box["height"] > 50
    assert found.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert found.page.pdf(format="A4").startswith(b"%PDF")
    found.assert_quiet()


@pytest.mark.parametrize("script", [True, False])
def test_a_figure_s_data_can_be_kept_without_leaving_the_page(
    file: Path, drawn: Figure, opened: Open, tmp_path: Path, script: bool
) -> None:
    found = opened(file, java_script_enabled=script)
    with found.page.expect_download() as kept:
        found.page.locator("a[download]").first.click()
    assert kept.value.suggested_filename == "all.csv"
    kept.value.save_as(tmp_path / "kept.csv")
    assert (tmp_path / "kept.csv").read_text() == drawn.csv
    assert found.page.url == file.resolve().as_uri()
    assert [error for error in found.errors if "policy" in error] == []


def test_data_that_are_too_much_for_the_page_lie_beside_it(document: dict[str, Any], drawn: Figure) -> None:
    long = dataclasses.replace(drawn, csv="a\n" + "1\n" * 400_000)
    figures = [drawn, long, dataclasses.replace(long, name="../e2 hits"), dataclasses.replace(drawn, name="late")]
    page = ledger_page(document, figures)
    files = data_files(figures)
    assert list(files) == ["figures/e2-hits.2.csv", "figures/e2-hits.3.csv", "figures/late.csv"]
    assert files["figures/e2-hits.2.csv"] == long.csv
    assert 'href="figures/late.csv" download="late.csv"' in page
    assert len(page.encode()) < 5_000_000


def test_figures_have_the_page_s_colours_and_ids_of_their_own(file: Path, opened: Open) -> None:
    look = """[...document.querySelectorAll('.s-red, .f-ground')].slice(0, 9)
              .map(e => getComputedStyle(e).stroke + getComputedStyle(e).fill)"""
    light, dark = (opened(file, dark=dark).page.evaluate(look) for dark in (False, True))
    assert light and light != dark
    ids = opened(file).page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def hostile(value: Any) -> Any:
    """Every text that a study writes, made hostile; the document's own words stay."""
    if isinstance(value, dict):
        kept = {"kind", "outcome", "name", "time", "event", "what", "clock", "claim", "sign", "arm", "words", "engine"}
        return {key: item if key in kept else hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return HOSTILE if isinstance(value, str) else value


def test_hostile_text_is_text(document: dict[str, Any], drawn: Figure, opened: Open, tmp_path: Path) -> None:
    texts = ("title", "question", "blindness", "caveats", "notes", "deviations", "amendments", "sightings", "check",
             "changes", "scores", "attempts", "runs")  # fmt: skip
    defaced = document | {
        "study": HOSTILE,
        "attempts_log_problems": [HOSTILE],
        "exploratory_runs": [HOSTILE],
        "unseen_pushes": [HOSTILE],
        "registrations": [
            entry
            | {
                name: hostile(entry[name] or [HOSTILE])
                for name in texts
                if entry[name] is not None or name in texts[2:7]
            }
            for entry in document["registrations"]
        ],
    }
    file = tmp_path / "index.html"
    file.write_text(
        ledger_page(defaced, [dataclasses.replace(drawn, title=HOSTILE, text=HOSTILE, name='"x/y')]), "utf-8"
    )
    found = opened(file, width=390)
    found.page.locator("#open-all").click()
    assert found.page.title().startswith("Evidence ledger of </script><img")
    assert found.page.locator("img, main b[style]").count() == 0
    content = found.page.content()
    assert not set("\u202e\u2066") & set(content) and "U+202EU+2066" in content
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 390
    found.assert_quiet()


def test_the_same_study_gives_the_same_bytes(document: dict[str, Any], drawn: Figure, file: Path) -> None:
    assert ledger_page(document, [drawn]) == ledger_page(json.loads(json.dumps(document, sort_keys=True)), [drawn])


def test_nothing_registered_is_a_page_too(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "index.html"
    file.write_text(ledger_page(ledger_document(report())), "utf-8")
    found = opened(file)
    assert "Nothing is registered yet." in found.page.locator("main").inner_text()
    assert accessibility(found.page) == []
    found.assert_quiet()


def test_three_hundred_runs_stay_below_5_mb(document: dict[str, Any], drawn: Figure) -> None:
    entry = document["registrations"][0]
    many = document | {"registrations": [entry | {"tag": f"reg/e2/v{n}"} for n in range(1, 18)]}
    figures = [dataclasses.replace(drawn, registration=e["tag"]) for e in many["registrations"]]
    assert sum(len(e["runs"]) for e in many["registrations"]) > 300
    assert len(ledger_page(many, figures).encode()) < 5_000_000
