"""The playground in a browser: quiet, accessible, sliders that snap, a replay that plays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Opened, accessibility
from tests.browser.playground_build import GRID, small_pages

SLIDERS = ("loop", "timescales", "renewal", "calculator")
NUMBERS = {"loop": "9324", "timescales": "26.17", "renewal": "1.1383", "calculator": "1.1261", "replay": "off at 5478"}
"""One that stands on each page before its script runs."""
PAGES = ("index", *SLIDERS, "replay")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_pages(tmp_path_factory.mktemp("playground"))


def data_of(page: Page) -> Any:
    return page.evaluate("JSON.parse(document.getElementById('data').textContent)")


def shown(value: float | None) -> str:
    if value is None:
        return "none"
    text = f"{value:,}" if abs(value) >= 10_000 else repr(value)
    return text.removesuffix(".0")


SEEN = """() => ({
  load: document.getElementById("load-shown").textContent,
  words: document.getElementById("words").textContent,
  chosen: ["cell", "workload", "load"].map((name) => document.getElementById(name).value),
  values: [...document.querySelectorAll("[data-value]")].map((place) => [place.dataset.value, place.textContent]),
})"""


def assert_shows_an_entry(page: Page, data: Any) -> None:
    """Every number with a column's name is that column's at the slider's place."""
    seen = page.evaluate(SEEN)
    cell, workload, index = seen["chosen"]
    entry = data["cells"][cell]["workloads"][workload]
    assert seen["load"] == shown(data["loads"][int(index)])
    assert f"{cell}, {workload} workload, load {seen['load']}" in seen["words"]
    assert len(seen["values"]) >= 5
    for name, text in seen["values"]:
        column = entry["columns"].get(name)
        assert text == (shown(column[int(index)]) if column else "not known")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_page_is_quiet_accessible_and_fits(
    pages: dict[str, Path], opened: Callable[..., Opened], name: str, width: int, dark: bool
) -> None:
    found = opened(pages[name], width=width, dark=dark)
    assert accessibility(found.page) == []
    assert found.page.evaluate("document.documentElement.scrollWidth") == width
    found.assert_quiet()


@pytest.mark.parametrize("name", SLIDERS)
def test_sliders_snap_to_what_was_computed(pages: dict[str, Path], opened: Callable[..., Opened], name: str) -> None:
    found = opened(pages[name])
    page, slider, data = found.page, found.page.locator("#load"), data_of(found.page)
    assert_shows_an_entry(page, data)
    before = page.locator("#words").text_content()
    slider.press("ArrowRight")
    assert page.locator("#words").text_content() != before
    assert_shows_an_entry(page, data)
    box = slider.bounding_box()
    assert box
    for share in (0.03, 0.29, 0.61, 0.97):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        assert_shows_an_entry(page, data)
    for cell in GRID.cells:
        for workload in ("standard", "mirror"):
            page.locator("#cell").select_option(cell)
            page.locator("#workload").select_option(workload)
            for key in ("Home", "End"):
                slider.press(key)
                assert_shows_an_entry(page, data)
    found.assert_quiet()


@pytest.mark.parametrize("name", PAGES[1:])
def test_without_a_script_a_page_shows_one_entry(pages: dict[str, Path], browser: Browser, name: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(pages[name].as_uri())
        assert page.get_by_text("needs this page's script").is_visible()
        assert page.locator("#controls").is_hidden()
        assert page.locator("figure:visible").count() == 0
        text = page.locator("main").inner_text()
        assert "sglang-300k" in text and "1.35" in text
        numbers = {
            "loop": "9324",
            "timescales": "26.17",
            "renewal": "1.1383",
            "calculator": "1.1261",
            "replay": "off at",
        }
        assert numbers[name] in text
    finally:
        context.close()


def test_a_load_below_capacity_has_no_trapped_state(pages: dict[str, Path], opened: Callable[..., Opened]) -> None:
    found = opened(pages["calculator"])
    found.page.locator("#load").press("Home")
    assert "no trapped state" in (found.page.locator("#words").text_content() or "")
    assert found.page.locator("[data-value=completions_over_lambda_miss]").text_content() == "none"
    found.page.goto(pages["loop"].as_uri())
    found.page.locator("#load").press("Home")
    assert "the loop does not hold" in (found.page.locator("#words").text_content() or "")
    assert set(found.page.locator("[data-verdict=exit_alone]").all_text_contents()) == {"works"}


def test_what_is_not_known_is_said(pages: dict[str, Path], opened: Callable[..., Opened]) -> None:
    page = opened(pages["calculator"]).page
    page.locator("#cell").select_option("vllm-300k")
    assert page.locator("[data-value=completions_per_h]").text_content() == "not known"
    assert "the paper prints no arrival count" in (page.locator("#scale").text_content() or "")
    page = opened(pages["loop"]).page
    page.locator("#cell").select_option("vllm-cpu-mini")
    assert set(page.locator("[data-verdict=exit_cap]").all_text_contents()) == {"not known"}
    assert "its longest turn takes 40,450 tokens" in (page.locator("#problem").text_content() or "")


def test_a_small_cut_fails_and_with_capped_steps_it_works(
    pages: dict[str, Path], opened: Callable[..., Opened]
) -> None:
    page = opened(pages["loop"]).page
    page.locator("#load").fill(str(GRID.loads.index(1.65)))
    verdicts = page.locator("[data-verdict=exit_cut]")
    assert set(verdicts.all_text_contents()) == {"does not"}
    page.locator("#workload").select_option("mirror")
    assert set(verdicts.all_text_contents()) == {"works"}
    assert all("yes" in (place.get_attribute("class") or "") for place in verdicts.all())


def stop_the_clock(page: Page) -> None:
    """From here on time passes where a test says so."""
    page.clock.install(time=0)
    page.clock.pause_at(1000)


def test_the_replay_plays_pauses_and_can_be_scrubbed(pages: dict[str, Path], opened: Callable[..., Opened]) -> None:
    found = opened(pages["replay"])
    page, time, button = found.page, found.page.locator("#time"), found.page.locator("#play")
    stop_the_clock(page)
    data = data_of(page)
    button.click()
    assert (time.input_value(), button.text_content()) == ("0", "Pause")
    page.clock.run_for(5000)
    # 400 times as fast, bins of 20 s: 100 bins in 5 s, give or take the last tick.
    assert 98 <= int(time.input_value()) <= 100
    button.click()
    resting = time.input_value()
    page.clock.run_for(5000)
    assert (time.input_value(), button.text_content()) == (resting, "Play")
    for scenario in range(len(data["scenarios"])):
        page.locator("#scenario").select_option(str(scenario))
        for key in ("End", "ArrowLeft", "Home", "PageUp"):
            time.press(key)
            assert_shows_a_bin(page, data["scenarios"][scenario])
    found.assert_quiet()


def assert_shows_a_bin(page: Page, scenario: Any) -> None:
    index = int(page.locator("#time").input_value())
    for arm in ("alone", "rescued"):
        for name in ("hits", "engine", "tools", "gate"):
            assert page.locator(f"#{arm}-{name}").text_content() == shown(scenario[arm][name][index])
    cap_on = scenario["rescued"]["engaged_s"] <= (index + 0.5) * 20 < scenario["rescued"]["release_s"]
    assert cap_on == ("Cap engaged" in (page.locator("#rescued-state").text_content() or ""))


def test_the_replay_ends_by_itself_and_begins_anew(pages: dict[str, Path], opened: Callable[..., Opened]) -> None:
    page = opened(pages["replay"]).page
    stop_the_clock(page)
    page.locator("#speed").select_option("1600")
    page.locator("#play").click()
    page.clock.run_for(10_000)
    assert page.locator("#play").text_content() == "Play"
    assert page.locator("#time").input_value() == page.locator("#time").get_attribute("max")
    assert "Left alone: hit fraction 0" in (page.locator("#words").text_content() or "")
    page.locator("#play").click()
    assert page.locator("#time").input_value() == "0"


def test_with_reduced_motion_the_replay_moves_once_a_second(
    pages: dict[str, Path], opened: Callable[..., Opened]
) -> None:
    page = opened(pages["replay"], reduced_motion="reduce").page
    stop_the_clock(page)
    page.locator("#play").click()
    page.clock.run_for(900)
    assert page.locator("#time").input_value() == "0"
    page.clock.run_for(200)
    assert page.locator("#time").input_value() == "20"


def test_links_stay_among_the_pages(pages: dict[str, Path]) -> None:
    for file in pages.values():
        text = file.read_text()
        targets = set(re.findall(r'(?:href|src)="([^"]+)"', text))
        assert targets == {"#main", *(other.name for other in pages.values())}
        assert "style=" not in text.replace("<style>", "") and not re.search(r"\son\w+=", text.partition("<script")[0])


def test_what_is_simulated_says_so(pages: dict[str, Path]) -> None:
    for name in ("loop", "timescales", "replay"):
        assert '<span class="simulated">SIMULATED</span>' in pages[name].read_text()
