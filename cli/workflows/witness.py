"""Running a witness server: making its folder, serving it, looking into it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from registry.errors import TrapError, WitnessError
from registry.ssh_signature import public_text
from registry.witness.server.application import Application
from registry.witness.server.authentication import VARIABLE, Gate
from registry.witness.server.inspection import check_against, problems_of
from registry.witness.server.reconciliation import push_lock, read_log, reconcile
from registry.witness.server.repositories import Repository, WitnessFolder, install_hooks, split_name
from registry.witness.server.serving import Server, check_exposure, is_loopback

_START_WAIT_S = 60.0


@dataclass(frozen=True)
class ServeOptions:
    """How a folder is served; `url` is how clients reach it through a proxy."""

    host: str
    port: int
    private: bool
    open_to_all: bool
    url: str | None
    max_push_bytes: int


def create_repository(folder: Path, full_name: str) -> tuple[Repository, str]:
    """Make a repository, and folder and key where they are missing; returns it
    and the server's public key.
    """
    split_name(full_name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    witness = WitnessFolder(folder)
    repository = witness.create(full_name)
    return repository, public_text(witness.key())


def serve(folder: Path, options: ServeOptions, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
    """Serve a folder until SIGTERM or SIGINT; requests under way are finished.

    `say` receives where it is served, `warn` one line for each push and
    trouble. The token is taken out of the environment, so that no child of
    this process has it.
    """
    token = os.environ.pop(VARIABLE, None)
    check_exposure(options.host, token=token is not None, open_to_all=options.open_to_all, url=options.url)
    witness = WitnessFolder(folder)
    application = Application(witness, Gate(token, private=options.private), say=warn, url=options.url)
    repositories = witness.all()
    for repository in repositories:
        _bring_up(repository, warn)
    server = Server(application, options.host, options.port, max_body_bytes=options.max_push_bytes)
    if not is_loopback(server.host):
        warn("no TLS here: outside of a network you trust, put a reverse proxy before this server")
    say(f"serving {len(repositories)} repositories of {folder} on {options.url or server.url}")
    say(f"key: {application.public_key}")
    handlers = {number: signal.signal(number, lambda *_: server.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    say("stopped")


def _bring_up(repository: Repository, warn: Callable[[str], None]) -> None:
    """Hooks of this version, and a log that holds what the refs hold."""
    try:
        with push_lock(repository, _START_WAIT_S):
            install_hooks(repository.path)
            if late := reconcile(repository):
                warn(f"{repository.full_name}: {late} rows logged late: something died during a push")
    except TrapError as error:
        warn(f"{error.diagnostics()}\n  this repository takes no pushes")


def log_of(folder: Path, full_name: str) -> tuple[bytes, str]:
    """The log of a repository, and its name."""
    repository = _named(WitnessFolder(folder), full_name)
    return read_log(repository), repository.full_name


def check(folder: Path, full_name: str | None, against: Path | None) -> list[tuple[str, list[str]]]:
    """Each repository's name and its problems; none where all is well.

    `against` is an earlier copy of the log, or an earlier checkpoint.
    """
    witness = WitnessFolder(folder)
    key = public_text(witness.key())
    if against is not None and full_name is None:
        raise WitnessError("a copy is of one repository", where=str(against), remedy="name it: OWNER/NAME")
    repositories = [_named(witness, full_name)] if full_name else witness.all()
    found = []
    for repository in repositories:
        problems = problems_of(repository)
        if against is not None:
            problems += _compared(repository, against, key)
        found.append((repository.full_name, problems))
    return found


def _compared(repository: Repository, against: Path, key: str) -> list[str]:
    try:
        check_against(repository, against.read_bytes(), str(against), key)
    except OSError as error:
        raise WitnessError(
            f"the copy cannot be read: {error.strerror}", where=str(against), remedy="--against FILE"
        ) from None
    except TrapError as error:
        return [f"{error.where}: {error.what}"]
    return []


def _named(witness: WitnessFolder, full_name: str) -> Repository:
    repository = witness.find(*split_name(full_name))
    if repository is None:
        raise WitnessError(
            "no such repository on this witness",
            where=str(witness.root),
            value=full_name,
            remedy="make it: trapkit witness create DIR OWNER/NAME",
        )
    return repository
