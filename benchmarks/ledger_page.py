"""How large the ledger's page of many runs is, and when Chromium first shows it.

`make demo` first, then `python benchmarks/ledger_page.py [STUDY] [--runs 300] [--rounds 5] [--json]`: e2 of the
demo's study, its figure with it, stands in the page as often as it takes. Needs a Chromium on the PATH.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from artifacts.reader import read_run_record, read_tables
from cli.render.picture_arms import draw_arms
from cli.render.pictures import drawing
from ledger.page.figure import Figure
from ledger.page.ledger_page import ledger_page
from registry.registration import read_registration
from verifier.run_report import frames_of
from verifier.series import series_of

BIN_S = 60.0
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def figure_of(study: Path) -> Figure:
    """Hits and sessions of every run of e2, with what is drawn as CSV."""
    file = study / "registrations/e2.v1.json"
    registration = read_registration(file.read_bytes(), str(file))
    design = registration.draft.design
    curves = {}
    for run in design.run_ids():
        folder = study / "runs" / registration.folder / run.path / "attempt-1"
        frames = frames_of(read_tables(folder, read_run_record(folder)))
        curves[run] = series_of(frames, design.horizon_s, BIN_S, registration.cell.cache_block_tokens)
    rows = [
        f"{run.path},{t_s:g},{hits:.4g},{outstanding:.4g}"
        for run, one in curves.items()
        for t_s, hits, outstanding in zip(one.middle_s, one.hits, one.outstanding, strict=True)
    ]
    svg = io.StringIO()
    with drawing() as pyplot:
        drawn = draw_arms(pyplot, curves, title="e2", marks={}, judged=None, horizon_s=design.horizon_s)
        drawn.savefig(svg, format="svg", metadata={"Date": None})
    data = "\n".join(["run,time_s,followup_hit_fraction,outstanding", *rows, ""])
    return Figure("e2-hits", "Hits and sessions over time", "The arms of e2.", svg.getvalue(), data)


def repeated(document: dict[str, Any], runs: int) -> dict[str, Any]:
    """The document with e2 in it, under new names, until it has that many runs."""
    (entry,) = (e for e in document["registrations"] if e["tag"] == "reg/e2/v1")
    copies = -(-runs // len(entry["runs"]))
    return document | {"registrations": [entry | {"tag": f"reg/e2/v{n}"} for n in range(1, copies + 1)]}


def paints(file: Path, rounds: int) -> list[tuple[float, float]]:
    """First contentful paint and the end of loading, seconds, of a new browser each."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("there is no Chromium here")
    found = []
    with sync_playwright() as playwright:
        for _ in range(rounds):
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(file.resolve().as_uri())
            page.wait_for_function(FIRST_PAINT)
            found.append((page.evaluate(FIRST_PAINT) / 1000, page.evaluate(LOADED) / 1000))
            browser.close()
    return found


def main() -> None:
    """Print the size and the times."""
    parser = argparse.ArgumentParser(description="Size and first view of the ledger's page.")
    parser.add_argument("study", type=Path, nargs="?", default=Path("build/demo-study"))
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    document = repeated(json.loads((options.study / "evidence/ledger.json").read_text()), options.runs)
    one = figure_of(options.study)
    figures = [replace(one, registration=entry["tag"]) for entry in document["registrations"]]
    start = time.perf_counter()
    text = ledger_page(document, figures)
    written_s = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "index.html"
        file.write_text(text, encoding="utf-8")
        size = file.stat().st_size
        times = paints(file, options.rounds)
    result = {
        "runs": sum(len(entry["runs"]) for entry in document["registrations"]),
        "figures": len(figures),
        "mb": round(size / 1e6, 2),
        "written_s": round(written_s, 2),
        "first_view_s": round(statistics.median(first for first, _ in times), 2),
        "first_view_worst_s": round(max(first for first, _ in times), 2),
        "loaded_s": round(statistics.median(loaded for _, loaded in times), 2),
    }
    if options.json:
        print(json.dumps(result))
        return
    print("\n".join(f"{name}: {value}" for name, value in result.items()))
    print("wanted: at most 5 MB and 2 s to the first view")


if __name__ == "__main__":
    main()
