"""Engines, workers and runs that die, hang or are interrupted: every attempt
ends as abandoned and says why, nothing of the engine is left, and the next
`trapkit run` takes the next number.

Real processes throughout. Attempts of one study follow each other, so that each
of them is also the next one of the fault before.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.study.engines import (
    CALIBRATION,
    PROJECT,
    engine_section,
    engine_study,
    fork_anew,
    literal,
    register,
    results,
)
from tests.support import Result, command

pytestmark = pytest.mark.usefixtures("_fork_server")
MARK = "TRAPKIT_TEST_MARK"
NAME = "all-miss-stub"


@pytest.fixture(scope="module")
def _fork_server() -> None:
    fork_anew()


class Bench:
    """A study of one run on the stub, whose options may change from attempt to attempt."""

    def __init__(self, folder: Path, horizon_s: float) -> None:
        self.options = folder / "options"
        self.mark = str(folder)
        variables = {"PYTHONPATH": str(PROJECT), "VLLM_SERVER_DEV_MODE": "1", MARK: self.mark}
        section = engine_section(
            ["--stub-options-file", str(self.options)], environment=variables, hang_timeout_s=1, ready_timeout_s=20
        )
        text = literal(CALIBRATION).replace("horizon_s: 0.6", f"horizon_s: {horizon_s}")
        self.root = engine_study(folder, section, text)
        register(self.root, NAME)
        self.attempts = 0

    def processes(self) -> list[psutil.Process]:
        """The engine, its keeper, and what the engine started."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def engine(self, part: str = "tests.engines") -> psutil.Process:
        """The one whose command line begins so."""
        return next(p for p in self.processes() if any(word.startswith(part) for word in p.cmdline()[1:4]))

    def folder(self) -> Path:
        return self.root / f"runs/{NAME}.v1/ALLMISS/closed/0/attempt-{self.attempts}"

    def worker(self) -> psutil.Process:
        """The process that drives the run."""
        worker = self.engine("runners.engines.keeper").parent()
        assert worker is not None
        return worker

    def run(
        self, options: str = "", act: Callable[[], object] | None = None, when: Callable[[], bool] | None = None
    ) -> Result:
        """`trapkit run` in this process, with these options of the stub; `act`
        meanwhile, when turns are under way.
        """
        self.options.write_text(options)
        self.attempts += 1
        if act is None:
            return command(self.root, "run", NAME)
        failures: list[BaseException] = []

        def wait_and_act() -> None:
            try:
                self.wait(when or self.under_way)
                act()
            except BaseException as error:
                failures.append(error)
                raise

        actor = threading.Thread(target=wait_and_act)
        actor.start()
        ran = command(self.root, "run", NAME)
        actor.join()
        assert not failures, failures
        return ran

    @contextlib.contextmanager
    def started(self, options: str = "") -> Iterator[subprocess.Popen[str]]:
        """`trapkit run` as a program of its own, its attempt under way."""
        self.options.write_text(options)
        self.attempts += 1
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.app", "run", NAME], cwd=self.root, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        )  # fmt: skip
        try:
            self.wait(self.under_way, process)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=30)

    def under_way(self) -> bool:
        """Whether turns were asked for."""
        file = self.folder() / "progress.jsonl"
        return file.exists() and '"time_s": 0' in file.read_text()

    def log(self) -> str:
        """What the engine printed."""
        file = self.folder() / "engine.log"
        return file.read_text() if file.exists() else ""

    def wait(self, happened: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
        until = time.monotonic() + 30
        while not happened():
            assert time.monotonic() < until, "it did not happen"
            if process and process.poll() is not None:
                raise AssertionError(process.communicate()[0])
            time.sleep(0.02)

    def abandoned(self) -> dict[str, Any]:
        """The attempt's pushed result, once its processes are gone."""
        assert self.processes() == []
        assert not (self.folder() / "run.json").exists()
        record = next(record for record in results(self.root) if record["attempt"] == self.attempts)
        assert record["event"] == "abandoned"
        return record

    def complete(self, options: str = "") -> None:
        """The next attempt reaches its horizon."""
        ran = self.run(options)
        assert ran.code == 0, ran.text
        assert self.processes() == []
        assert results(self.root)[-1]["event"] == "complete" and results(self.root)[-1]["attempt"] == self.attempts
        # What was abandoned before without a registered cause stays undecided.
        assert "not decidable" in command(self.root, "verify").out


def ignores(process: psutil.Process, number: int) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return bool(int(status.partition("SigIgn:")[2].split()[0], 16) >> (number - 1) & 1)


def partial(folder: Path) -> dict[str, Any]:
    """abandoned.json of an attempt whose records were kept."""
    told: dict[str, Any] = json.loads((folder / "abandoned.json").read_bytes())
    assert set(told["files"]) == {f"{name}.parquet" for name in ("turns", "sessions", "gate", "engine")}
    turns = pq.read_table(folder / "turns.parquet")
    assert turns.num_rows == told["files"]["turns.parquet"]["rows"] > 0
    return told


def test_what_is_killed_from_outside(tmp_path: Path) -> None:
    bench = Bench(tmp_path, horizon_s=30)
    children = "--stub-children 2"

    def kill_engine() -> None:
        assert len(bench.processes()) == 4, "a keeper, an engine, its children"
        # Whoever is asked to end must be able to: ignored signals are inherited.
        assert not any(ignores(process, signal.SIGTERM) for process in bench.engine().children())
        bench.engine().kill()

    ran = bench.run(children, kill_engine)
    assert ran.code == 1 and "the engine exited with 137 during the run" in ran.out
    assert "the engine exited with 137 during the run" in bench.abandoned()["reason"]
    assert partial(bench.folder())["reason"] == "the engine exited with 137 during the run"

    ran = bench.run(children, lambda: bench.worker().kill())
    assert ran.code == 1 and "terminated abruptly" in ran.out
    assert "terminated abruptly" in bench.abandoned()["reason"]

    for number in (signal.SIGTERM, signal.SIGINT):
        ran = bench.run(children, lambda number=number: interrupt(bench, number))
        assert ran.code == 130
        assert bench.abandoned()["reason"] == "the run was interrupted"
        assert partial(bench.folder())["reason"] == "the run was interrupted"


def interrupt(bench: Bench, number: int) -> None:
    """Ctrl-C comes to all processes of a terminal, SIGTERM to the one that it is sent to."""
    assert callable(signal.getsignal(number)), "it would end the tests"
    if number == signal.SIGINT:
        worker = bench.worker()
        for process in (worker, worker.parent()):
            assert process is not None and process.pid != os.getpid()
            process.send_signal(number)
    os.kill(os.getpid(), number)


def test_a_killed_run_and_one_that_is_interrupted_while_its_engine_loads(tmp_path: Path) -> None:
    bench = Bench(tmp_path, horizon_s=30)

    with bench.started("--stub-children 2") as process:
        process.kill()
        process.communicate(timeout=30)
        bench.wait(lambda: not bench.processes())

    act = lambda: interrupt(bench, signal.SIGINT)  # noqa: E731
    ran = bench.run("--stub-start-s 60", act, lambda: "loading" in bench.log())
    assert ran.code == 130
    assert bench.abandoned()["reason"] == "the run was interrupted before it began"
    told = json.loads((bench.folder() / "abandoned.json").read_bytes())
    assert told["reason"] == "the run was interrupted before it began" and told["files"] == {}
    killed = next(record for record in results(bench.root) if record["attempt"] == 1)
    assert killed["event"] == "abandoned" and killed["reason"] == "its trap run is gone" and killed["late"]


def test_what_engines_do_wrong_by_themselves(tmp_path: Path) -> None:
    # Each run is given up long before: a busy machine has time to get so far.
    bench = Bench(tmp_path, horizon_s=10)

    ran = bench.run("--stub-fault hang --stub-good-turns 8")
    assert ran.code == 1
    assert "the engine hangs: 2 turns wait, no byte for 1 s" in bench.abandoned()["reason"]
    partial(bench.folder())

    # It ignores SIGTERM, and so do not its children: all are gone when the run returns.
    ran = bench.run("--stub-fault drop --stub-good-turns 8 --stub-ignore-sigterm --stub-children 2")
    assert ran.code == 1
    assert "turns failed one after the other" in bench.abandoned()["reason"]
    assert "connection lost" in json.dumps(pq.read_table(bench.folder() / "turns.parquet").column("detail").to_pylist())
    partial(bench.folder())

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = bench.run(f"--port {taken.getsockname()[1]}")
    assert ran.code == 1
    record = bench.abandoned()
    assert "the engine never got ready: it exited with 1" in record["reason"]
    assert record["cause"] == "engine_never_ready"
    assert "address already in use" in bench.log().lower()


def test_a_full_disk(tmp_path: Path) -> None:
    bench = Bench(tmp_path, horizon_s=1.5)
    runs = bench.root / "runs"
    runs.mkdir(exist_ok=True)
    mounted = (
        os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(runs)], capture_output=True
        ).returncode
        == 0
    )
    try:
        if mounted:
            ran = bench.run()
            code, told = ran.code, ran.text
        else:
            with bench.started() as process:
                bench.worker().rlimit(psutil.RLIMIT_FSIZE, (512, 512))
                told = process.communicate(timeout=30)[0]
                code = process.returncode
        assert code == 1
        words = "No space left on device" if mounted else "File too large"
        assert words.lower() in told.lower()
        assert words.lower() in bench.abandoned()["reason"].lower()
    finally:
        if mounted:
            subprocess.run(["umount", str(runs)], check=True)
    bench.complete("--stub-children 2")
