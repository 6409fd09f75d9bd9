"""What a sweep costs: simulated e2 runs, made whole, and killed half-way and resumed.

`python benchmarks/sweep.py [--seeds 20] [--workers 2] [--json] [--keep FOLDER]`. The
BURST arm of e2 over 20 rates, 25 bursts and 20 seeds are 10,000 runs of 8700 s.

wall_s, cpu_s   of `trapkit sweep`, its calibration and start included; CPU of all its processes
runs_per_s      over the wall time
peak_mb         of all its processes together, pages that they share counted once (Linux's PSS)
files, mb       what lies in the sweep's folder
killed_at       how many shards were done when the program got SIGKILL
resumed_s       what the same command took to finish
same_bytes      whether every file is then as the uninterrupted sweep's
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
GRID = ("--rates", "1.05:2.0:0.05", "--bursts", "0:240:10")
SAMPLE_S = 0.5


class Watched:
    """A sweep that runs, its processes looked at each half second."""

    def __init__(self, folder: Path, seeds: int, workers: int) -> None:
        program = str(Path(sys.executable).with_name("trapkit"))
        command = [program, "sweep", str(ROOT / "rules" / "e2.yaml"), "--out", str(folder), *GRID]
        command += ["--seeds", f"0:{seeds - 1}", "--workers", str(workers)]
        self.folder = folder
        self.begun = time.perf_counter()
        self.process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.cpu_s: dict[psutil.Process, float] = {}
        self.peak_bytes = 0

    def look(self) -> None:
        """Note memory and CPU time of the program and all below it."""
        together = 0
        try:
            tree = [self.process, *self.process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for one in tree:
            try:
                times = one.cpu_times()
                self.cpu_s[one] = times.user + times.system
                together += one.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        self.peak_bytes = max(self.peak_bytes, together)

    def until(self, over: Callable[[], bool]) -> None:
        """Go on looking until the program has ended, or `over`."""
        while self.process.poll() is None and not over():
            self.look()
            time.sleep(SAMPLE_S)

    def figures(self) -> dict[str, float]:
        """What it took; exits with its words where it failed."""
        wall_s = time.perf_counter() - self.begun
        if self.process.returncode:
            sys.exit(self.process.stderr.read())
        return {"wall_s": wall_s, "cpu_s": sum(self.cpu_s.values()), "peak_mb": self.peak_bytes / 1e6}

    def kill(self) -> None:
        """SIGKILL for the program alone; return when all below it is gone."""
        below = self.process.children(recursive=True)
        self.process.kill()
        self.process.wait()
        psutil.wait_procs(below, timeout=60)


def done(folder: Path) -> int:
    """How many shards of a sweep are done."""
    return len(list((folder / "readings").glob("shard-*.parquet")))


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, by its path there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def measured(folder: Path, seeds: int, workers: int) -> dict[str, Any]:
    """All figures; two sweeps in `folder`."""
    whole, cut = folder / "whole", folder / "cut"
    first = Watched(whole, seeds, workers)
    first.until(lambda: False)
    figures: dict[str, Any] = {"load_1m": os.getloadavg()[0], "runs": 500 * seeds, "workers": workers}
    figures |= first.figures()
    figures["runs_per_s"] = figures["runs"] / figures["wall_s"]
    files = [path for path in whole.rglob("*") if path.is_file()]
    figures |= {"files": len(files), "mb": sum(path.stat().st_size for path in files) / 1e6}
    second = Watched(cut, seeds, workers)
    second.until(lambda: done(cut) * 2 >= done(whole))
    second.kill()
    figures["killed_at"] = f"{done(cut)} of {done(whole)} shards"
    third = Watched(cut, seeds, workers)
    third.until(lambda: False)
    figures["resumed_s"] = third.figures()["wall_s"]
    figures["same_bytes"] = digests(cut) == digests(whole)
    return figures


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="500 runs each")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", type=Path, help="an empty or absent folder that keeps both sweeps")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(asked.keep or Path(folder), asked.seeds, asked.workers)
    if asked.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name}: {value:,.1f}" if isinstance(value, float) else f"{name}: {value}")


if __name__ == "__main__":
    main()
