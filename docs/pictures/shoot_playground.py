"""The picture of docs/playground.md: python docs/pictures/shoot_playground.py build/playground CHROMIUM."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).with_name("playground.png")
WIDTH, HEIGHT = 1100, 600
BIN = "120"
"""2400 s: the cap is engaged, and hits come back."""


def shoot(folder: Path, chromium: str) -> None:
    """The replay's two engines at one time, in light colours."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto((folder / "replay.html").resolve().as_uri())
        page.locator("#time").fill(BIN)
        page.locator("#time").blur()
        page.locator(".panels").scroll_into_view_if_needed()
        box = page.locator(".panels").bounding_box()
        assert box
        clip = {"x": box["x"] - 12, "y": box["y"] - 12, "width": box["width"] + 24, "height": box["height"] + 24}
        page.screenshot(path=PICTURE, clip=clip)  # type: ignore[arg-type]
        browser.close()


if __name__ == "__main__":
    shoot(Path(sys.argv[1]), sys.argv[2])
