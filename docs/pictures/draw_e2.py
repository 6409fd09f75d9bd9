"""Draws docs/pictures/e2-hits.svg from the run files of a study.

    python docs/pictures/draw_e2.py build/demo-study

One seed of e2 at one rate, its arms beside each other: follow-up hit fraction
and sessions present, in 60 s bins. The same run files give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from artifacts.reader import read_run_record, read_tables
from registry.design import Window
from registry.registration import Registration, read_registration
from verifier.readings import RunFrames, compute_readings
from verifier.run_report import frames_of
from verifier.turn_columns import TurnColumns, due_turns, gate_spans

BIN_S = 60.0
COLOURS = {"BURST": "#b3261e", "NOBURST": "#1d6a4b", "CAPPED": "#1f4e9c"}
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """One arm over time, one value a bin: hits (NaN where no follow-up ended),
    sessions waiting at or served by the engine, sessions waiting at the gate.
    """

    hits: FloatArray
    outstanding: FloatArray
    at_gate: FloatArray


def curves_of(frames: RunFrames, registration: Registration) -> Curves:
    """The curves of one run, each bin a window of its own."""
    cell, horizon_s = registration.cell, registration.draft.design.horizon_s
    hits, outstanding, at_gate = [], [], []
    turns = TurnColumns.of(frames.turns)
    for k in range(math.ceil(horizon_s / BIN_S)):
        window = Window(f"bin {k}", k * BIN_S, min((k + 1) * BIN_S, horizon_s))
        readings = compute_readings(
            frames, window, pool_tokens=cell.pool_tokens, cache_block_tokens=cell.cache_block_tokens
        )
        hits.append(readings["followup_hit_fraction"])
        outstanding.append(readings["outstanding"])
        waits = gate_spans(due_turns(turns, window.end_s)).overlaps(window.start_s, window.end_s)
        at_gate.append(float(waits.sum()) / (window.end_s - window.start_s))
    return Curves(np.array(hits), np.array(outstanding), np.array(at_gate))


def load(study: Path, rate: str, seed: int) -> tuple[Registration, dict[str, Curves]]:
    """The registration e2 v1 of a study, and the curves of its arms."""
    path = study / "registrations" / "e2.v1.json"
    registration = read_registration(path.read_bytes(), str(path))
    curves = {}
    for arm in COLOURS:
        run = (study / "runs" / registration.folder / arm / rate / str(seed)).resolve()
        folder = min(run.glob("attempt-*"), key=lambda p: int(p.name.removeprefix("attempt-")))
        record = read_run_record(folder)
        if not record.fields["engine"]["simulated"]:
            raise SystemExit(f"{folder} is not a simulated run: this picture is titled SIMULATED")
        curves[arm] = curves_of(frames_of(read_tables(folder, record)), registration)
    return registration, curves


def draw(registration: Registration, curves: dict[str, Curves], rate: str, seed: int, target: Path) -> None:
    """Write the picture."""
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "trapkit", "svg.fonttype": "path", "font.size": 9, "axes.titlesize": 10})
    from matplotlib import pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    figure.suptitle(f"SIMULATED: e2 on cell {registration.cell.name} at {rate} lambda_ref, seed {seed}", weight="bold")
    design = registration.draft.design
    burst = design.arm("BURST").burst
    judged = {w.name: w for w in design.windows}[registration.draft.judged_window]
    styles = {"BURST": ("-", 1.6), "NOBURST": ("-", 2.6), "CAPPED": ("--", 1.4)}
    for arm, curve in curves.items():
        middle = (np.arange(curve.hits.size) + 0.5) * BIN_S
        style, width = styles[arm]
        for axes, values in ((above, curve.hits), (below, curve.outstanding)):
            axes.plot(middle, values, style, color=COLOURS[arm], linewidth=width, label=arm)
    capped = curves["CAPPED"]
    middle = (np.arange(capped.at_gate.size) + 0.5) * BIN_S
    below.plot(middle, capped.at_gate, ":", color=COLOURS["CAPPED"], label="CAPPED, waiting at the client's gate")
    for axes in (above, below):
        axes.axvspan(judged.start_s, judged.end_s, color="#888888", alpha=0.12, linewidth=0)
        if burst:
            axes.axvline(burst.start_s, color="#444444", linewidth=0.8)
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    above.set_ylabel("follow-up hit fraction")
    above.set_ylim(-0.05, 1.08)
    above.legend(loc="center right", frameon=False)
    above.text(judged.start_s + 60, 0.05, "judged window", color="#555555")
    if burst:
        above.text(burst.start_s + 150, 0.3, f"burst of {burst.sessions} sessions", color="#444444")
    below.set_ylabel("sessions waiting at or\nserved by the engine")
    below.set_ylim(bottom=0)
    below.set_xlim(0, design.horizon_s)
    below.set_xlabel("time from the run's start, s (60 s bins)")
    below.legend(loc="center right", bbox_to_anchor=(1.0, 0.34), frameon=False)
    no_metadata: dict[str, Any] = {"Date": None, "Creator": None, "Type": None, "Format": None}
    figure.savefig(target, metadata=no_metadata)
    plt.close(figure)


def main() -> None:
    """Parse the command line and draw."""
    parser = argparse.ArgumentParser(description="Draw e2's hit fraction and backlog over time.")
    parser.add_argument("study", type=Path, help="a study with finished runs of e2 v1")
    parser.add_argument("--rate", default="1.35")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("e2-hits.svg"))
    options = parser.parse_args()
    registration, curves = load(options.study, options.rate, options.seed)
    draw(registration, curves, options.rate, options.seed, options.out)
    end = {arm: round(float(curve.outstanding[-1]), 1) for arm, curve in curves.items()}
    print(json.dumps({"wrote": options.out.name, "sessions present at the end": end}))


if __name__ == "__main__":
    main()
