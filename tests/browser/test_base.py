"""What every page has: a policy that lets nothing in, and text that is text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from markupsafe import Markup

from ledger.page.html import data_block, page
from tests.browser.conftest import Opened, accessibility

HOSTILE = '</script><img src=x onerror="document.title=1"><b style="color:red">'


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The base alone, its blocks empty but for the title: a child of it with nothing."""
    file = tmp_path / "page.html"
    file.write_text(page("base.html", {}).replace("<title>", f"<title>{Markup.escape(HOSTILE)}"))
    return file


@pytest.mark.parametrize("dark", [False, True])
def test_an_empty_page_is_quiet(base: Path, opened: Callable[..., Opened], dark: bool) -> None:
    found = opened(base, dark=dark)
    assert found.page.title() == HOSTILE
    assert [rule for rule in accessibility(found.page) if not rule.startswith(("page-has-heading", "region"))] == []
    found.assert_quiet()


def test_what_the_policy_refuses_is_seen(base: Path, opened: Callable[..., Opened]) -> None:
    base.write_text(base.read_text().replace("</main>", '<script>document.title="run"</script><p style="color:red">'))
    found = opened(base)
    assert found.page.title() == HOSTILE
    assert {text.split()[-1] for text in found.errors if text.startswith("policy")} == {
        "script-src-elem",
        "style-src-attr",
    }


def test_data_cannot_leave_its_element(base: Path, opened: Callable[..., Opened]) -> None:
    base.write_text(base.read_text().replace("</main>", data_block("data", {"text": HOSTILE}) + "</main>"))
    found = opened(base)
    assert found.page.evaluate("JSON.parse(document.getElementById('data').textContent).text") == HOSTILE
    assert found.page.locator("img").count() == 0
    found.assert_quiet()
