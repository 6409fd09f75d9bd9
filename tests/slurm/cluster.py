"""A real Slurm of one node with two fake GPUs, for as long as a test needs it.

`with cluster(folder) as found: ...` starts Debian's munged, slurmctld and slurmd
as root, with keys, sockets, ports and files of their own; `found.environment`
leads Slurm's commands to them. With `accounting` a MariaDB and slurmdbd are
started, too. On leaving, every process ends, also those of jobs. A cluster whose
test was killed is ended by the next one that starts.

`TRAP_SLURM=required` makes a missing Slurm a failure, as in continuous integration.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.slurm.configuration import CLUSTER, FREEZER, JOBS_A_PORT, Ports, write_configuration

MARK = "TRAPKIT_TEST_SLURM"
"""A variable of the daemons and of what they start: the cluster's folder. Jobs
have their submitter's variables instead, and Slurm's own."""

LOCK = "trapkit-test.lock"
"""Held by the test whose cluster is in this folder."""

DAEMONS = ("munged", "slurmctld", "slurmd")
ACCOUNTS = ("slurmdbd", "mariadbd", "mariadb-install-db", "my_print_defaults")
HELPERS = ("slurmctld", "slurmscriptd")
"""Processes of the controller's own."""

START_S = 60.0
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _missing(programs: tuple[str, ...]) -> list[str]:
    return [name for name in programs if shutil.which(name, path=_PATH) is None]


def _skip(programs: tuple[str, ...]) -> pytest.MarkDecorator:
    without = _missing(programs)
    skipped = os.environ.get("TRAP_SLURM") != "required" and (bool(without) or os.geteuid() != 0)
    reason = f"no {', '.join(without)} here: see docs/develop.md" if without else "a Slurm is started as root"
    return pytest.mark.skipif(skipped, reason=reason)


needs_slurm = _skip(DAEMONS)
needs_accounts = _skip((*DAEMONS, *ACCOUNTS))


@dataclass
class Cluster:
    """A running cluster; `environment` is for Slurm's commands and what uses them."""

    folder: Path
    ports: Ports
    environment: dict[str, str] = field(default_factory=dict)

    def said(self, *command: str, cwd: Path | None = None) -> str:
        """What a command printed; it must succeed."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, cwd=cwd, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout.strip()

    def state(self, job: str) -> str:
        """A job's state as squeue has it; empty where it has forgotten the job."""
        return dict(self.states()).get(job, "")

    def states(self) -> Iterator[tuple[str, str]]:
        """Job, as `123_4` in an array, and its state, of all that are known."""
        for line in self.said("squeue", "--noheader", "--array", "--states=all", "-o", "%i %T").splitlines():
            job, _, state = line.partition(" ")
            yield job, state

    def wait(self, happened: Callable[[], object], timeout_s: float, what: str) -> float:
        """Wait until it happened; how long that took."""
        began = time.monotonic()
        while not happened():
            assert time.monotonic() - began < timeout_s, f"not within {timeout_s} s: {what}\n{self.tail()}"
            time.sleep(0.1)
        return time.monotonic() - began

    def tail(self) -> str:
        """The last lines of each log."""
        logs = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in logs)

    def processes(self) -> list[psutil.Process]:
        """Processes of its jobs, and what else its daemons left to live without
        them; not what the test itself started.
        """
        own = {process.pid for process in psutil.Process().children(recursive=True)}
        return [process for process in _processes_of(str(self.folder)) if process.pid not in own]

    def left(self) -> list[str]:
        """What is left of jobs: command lines of their processes."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if process.name() not in HELPERS:
                    found.append(" ".join(process.cmdline()))
        return found


@contextmanager
def cluster(folder: Path, *, accounting: bool = False, min_job_age_s: int = 300) -> Iterator[Cluster]:
    """A cluster that is ready for jobs; `folder` is made. Squeue forgets a job
    `min_job_age_s` after its end, and up to 10 s later.
    """
    programs = (*DAEMONS, *(ACCOUNTS if accounting else ()))
    assert not (without := _missing(programs)), f"TRAP_SLURM=required, and there is no {', '.join(without)}"
    end_left_over()
    folder.mkdir(parents=True)
    host = socket.gethostname().partition(".")[0]
    ports = Ports(*_free_ports(3))
    with ExitStack() as stack:
        lock = stack.enter_context((folder / LOCK).open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_configuration(folder, host, ports, accounting=accounting, min_job_age_s=min_job_age_s)
        found = Cluster(folder, ports, {"SLURM_CONF": str(folder / "slurm.conf")})
        daemons: list[subprocess.Popen[bytes]] = []
        stack.callback(_end, found, daemons)
        _start(found, daemons, accounting)
        yield found


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def _start(found: Cluster, daemons: list[subprocess.Popen[bytes]], accounting: bool) -> None:
    folder = found.folder
    environment = {**os.environ, **found.environment, MARK: str(folder), "MYSQL_UNIX_PORT": f"{folder}/mariadb.socket"}

    def start(program: str, *arguments: str) -> None:
        path = shutil.which(program, path=_PATH)
        assert path
        with (folder / f"{program}.out").open("wb") as out:
            daemons.append(
                subprocess.Popen(
                    [path, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                    env=environment, cwd=folder, start_new_session=True,
                )
            )  # fmt: skip

    def started(port: int) -> None:
        found.wait(lambda: _listens(port) or daemons[-1].poll() is not None, START_S, f"{daemons[-1].args} listens")
        assert daemons[-1].poll() is None, found.tail()

    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    # Forced: the folder of a test is closed to others, which only munge itself minds.
    files = ("key-file=munge.key", "socket=munge.socket", "pid-file=munge.pid", "seed-file=munge.seed")
    named = [f"--{option}={folder}/{name}" for option, _, name in (text.partition("=") for text in files)]
    start("munged", "--foreground", "--force", *named)
    found.wait((folder / "munge.socket").exists, START_S, "munged is there")
    if accounting:
        _start_database(found, start)
        start("slurmdbd", "-D")
        started(found.ports.accounts)
        found.said("sacctmgr", "--immediate", "add", "cluster", CLUSTER)
    start("slurmctld", "-D")
    started(found.ports.controller)
    start("slurmd", "-D")
    asked = ("sinfo", "--noheader", "--partition=gpu", "--format=%T")
    found.wait(lambda: found.said(*asked) == "idle", START_S, "the node is idle")


def _start_database(found: Cluster, start: Callable[..., None]) -> None:
    """MariaDB without users or a port: who may open its socket may all."""
    folder = found.folder
    common = ("--no-defaults", f"--datadir={folder}/mariadb", "--user=root", "--innodb-log-file-size=4M")
    install = shutil.which("mariadb-install-db", path=_PATH)
    assert install
    found.said(install, *common, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
    start(
        "mariadbd", *common, f"--socket={folder}/mariadb.socket", f"--pid-file={folder}/mariadb.pid",
        "--skip-networking", "--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0",
    )  # fmt: skip
    found.wait((folder / "mariadb.socket").exists, START_S, "the database is there")


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _end(found: Cluster, daemons: list[subprocess.Popen[bytes]]) -> None:
    for daemon in reversed(daemons):
        daemon.kill()
        daemon.wait()
    _kill(found.processes)
    first = found.ports.controller * JOBS_A_PORT
    for job in FREEZER.glob("slurm/uid_0/job_*"):
        if first <= int(job.name.removeprefix("job_")) < first + JOBS_A_PORT:
            for group in sorted([job, *(path for path in job.rglob("*") if path.is_dir())], reverse=True):
                with suppress(OSError):
                    group.rmdir()


def end_left_over() -> None:
    """End the clusters of tests that were killed: nobody holds their lock."""
    for folder in {folder for process in psutil.process_iter() if (folder := folder_of(process))}:
        try:
            with (Path(folder) / LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except FileNotFoundError:
            # Its folder was removed: nobody is there either.
            pass
        _kill(partial(_processes_of, folder))


def _kill(processes: Callable[[], list[psutil.Process]]) -> None:
    """Kill until nothing is left: what still lives may start others."""
    while living := processes():
        for process in living:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(living, timeout=5)


def _processes_of(folder: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if folder_of(process) == folder]


def folder_of(process: psutil.Process) -> str | None:
    """The folder of the cluster that a process belongs to; None for all others."""
    # A zombie has no environment any more, and a process may end between two looks.
    with suppress(psutil.Error, OSError):
        if process.name() == "slurmstepd":
            # Its title takes the place of its variables; its folder is its slurmd's.
            here = Path(process.cwd())
            return str(here) if (here / LOCK).is_file() else None
        environment = process.environ()
        if environment.get("SLURM_CLUSTER_NAME") == CLUSTER and "SLURM_JOB_ID" in environment:
            return str(Path(environment.get("SLURM_CONF", "")).parent)
        return environment.get(MARK)
    return None
