"""A real browser: Debian's Chromium, driven by Playwright. It reaches no network.

`TRAP_BROWSER=required` makes a missing browser a failure, as in continuous integration.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
LISTEN = "document.addEventListener('securitypolicyviolation', e => console.error('policy: ' + e.violatedDirective))"
"""In every page, before anything of its own: what its policy refused is an error."""


@dataclass
class Opened:
    """A page, what it complained of, and which addresses it asked for beside its own."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def assert_quiet(self) -> None:
        """Nothing was complained of, nothing asked for."""
        assert self.errors == [] and self.requests == []


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module: while it is there, Playwright's event
    loop runs in this thread, and no other can.
    """
    path = _chromium()
    if path is None:
        assert os.environ.get("TRAP_BROWSER") != "required", "there is no Chromium here"
        pytest.skip("no Chromium here: see docs/develop.md")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Opens a file: `opened(path, width=390, dark=True)`."""
    contexts = []

    def open_file(file: Path, *, width: int = 1280, height: int = 900, dark: bool = False, **more: Any) -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **more
        )
        contexts.append(context)
        context.add_init_script(LISTEN)
        found = Opened(context.new_page())
        address = file.resolve().as_uri()
        found.page.on("console", lambda told: found.errors.append(told.text) if told.type == "error" else None)
        found.page.on("pageerror", lambda error: found.errors.append(str(error)))
        found.page.on(
            "request",
            lambda asked: None if asked.url.partition("#")[0] == address else found.requests.append(asked.url),
        )
        found.page.goto(address)
        return found

    yield open_file
    for context in contexts:
        context.close()


def accessibility(page: Page) -> list[str]:
    """What axe-core finds wrong (WCAG 2.2 A and AA, best practice), one line a rule."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page)
    return [f"{rule['id']}: {rule['nodes'][0]['target']} {rule['help']}" for rule in found.response["violations"]]
