"""A study on the stub whose runs are Slurm jobs, each engine with options of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.slurm.cluster import Cluster
from tests.study.engines import CALIBRATION, PROJECT, engine_section, engine_study, register, results
from tests.support import Result, command

MARK = "TRAPKIT_TEST_MARK"
HANGS_S = 180
"""No command may take longer."""


def rule(name: str, seeds: list[int], horizon_s: float = 0.6) -> str:
    """A registration of this id: a run a seed, each of `horizon_s`."""
    text = CALIBRATION.replace("id: all-miss-stub", f"id: {name}").replace("horizon_s: 0.6", f"horizon_s: {horizon_s}")
    return text.replace("values: [0, 1, 2], binding: beacon", f"values: {seeds}, binding: literal")


class SlurmStudy:
    """The study, the cluster that it runs on, and how long states took to be right."""

    def __init__(self, folder: Path, slurm: Cluster, *rules: str) -> None:
        self.slurm, self.mark = slurm, str(folder)
        variables = {"PYTHONPATH": str(PROJECT), "VLLM_SERVER_DEV_MODE": "1", MARK: self.mark}
        # An engine's folder is its attempt's: the file beside it is its run's.
        arguments = ["--stub-options-file", "../options"]
        self.root = engine_study(folder, engine_section(arguments, environment=variables, ready_timeout_s=300), *rules)
        self.settings = (self.root / "study.yaml").read_text()
        for text in rules:
            register(self.root, text.partition("\nid: ")[2].partition("\n")[0])
        self.took_s: dict[str, float] = {}

    def run_folder(self, name: str, seed: int) -> Path:
        return self.root / f"runs/{name}.v1/ALLMISS/closed/{seed}"

    def options(self, name: str, seed: int, options: str) -> None:
        """How the engine of this run behaves, from its next start on."""
        folder = self.run_folder(name, seed)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "options").write_text(options)

    def submit(self, name: str, **setup: Any) -> Result:
        """`trapkit run --executor slurm --no-wait`, jobs asking for this."""
        default = {"partition": "gpu", "time_s": 900, "warn_s": 5, "attempts": 2, "settle_s": 1, **setup}
        section = "executors: " + json.dumps({"slurm": {"default": default}}) + "\n"
        (self.root / "study.yaml").write_text(self.settings + section)
        return command(self.root, "run", name, "--executor", "slurm", "--no-wait")

    def finish(self, name: str) -> str:
        """`trapkit run --executor slurm`, to its end; what it said."""
        done = subprocess.run(
            [sys.executable, "-m", "cli.app", "run", name, "--executor", "slurm"], cwd=self.root, text=True,
            env={**os.environ, **self.slurm.environment, "PYTHONPATH": str(PROJECT)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANGS_S,
        )  # fmt: skip
        return done.stdout

    def status(self, name: str) -> dict[int, dict[str, Any]]:
        """What `trapkit status --json` says of each run, by seed."""
        said = command(self.root, "status", name, "--json")
        assert said.code == 0, said.text
        (stands,) = json.loads(said.out)
        return {run["seed"]: run for run in stands["runs"]}

    def wait_state(self, name: str, seed: int, states: tuple[str, ...], within_s: float, event: str) -> dict[str, Any]:
        """The run once its state is one of these; how long that took is kept under `event`."""
        began_s = time.monotonic()
        while (run := self.status(name)[seed])["state"] not in states:
            told = f"{event}: not {states} within {within_s} s but {run}"
            assert time.monotonic() - began_s < within_s, f"{told}\n{self.slurm.tail()}"
            time.sleep(1)
        self.took_s[event] = time.monotonic() - began_s
        return run

    def wait(self, happened: Callable[[], object], within_s: float, what: str) -> None:
        self.slurm.wait(happened, within_s, what)

    def under_way(self, name: str, seed: int, attempt: int = 1) -> bool:
        """Whether the attempt's engine and the stray that it started are there."""
        log = self.run_folder(name, seed) / f"attempt-{attempt}/engine.log"
        return log.exists() and "loading" in log.read_text()

    def engines(self, of: str = "") -> list[str]:
        """What is there of engines, keepers and what they started; `of` one registration."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                own = process.environ().get(MARK) == self.mark and (not of or f"/{of}.v1/" in process.cwd())
                if own and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
        return found

    def pushed(self, name: str, seed: int) -> list[tuple[int, str]]:
        """Attempt and event of the run's pushed results, in order."""
        records = [r for r in results(self.root) if r["registration"] == name and r["seed"] == seed]
        return [(record["attempt"], record["event"]) for record in records]

    def abandoned(self, name: str, seed: int, attempt: int = 1) -> dict[str, Any]:
        """What an attempt says of its own end."""
        told: dict[str, Any] = json.loads(
            (self.run_folder(name, seed) / f"attempt-{attempt}/abandoned.json").read_bytes()
        )
        return told
