"""The local witness: a bare repository whose hook logs pushes and draws.

It lies on the author's own machine, so it earns at most "registered": the
author could recreate it. Its rows have the fields of GitHub's activity log.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from registry.beacon import Beacon, BeaconPromise, BeaconValue
from registry.errors import WitnessError
from registry.witness.checkpoint import chain_name
from registry.witness.hooks import install_hook
from registry.witness.log import LOG_NAME, MAX_LOG_BYTES, parse_log
from registry.witness.rows import PushRow, rows_of

__all__ = [
    "ARCHIVE",
    "CHAIN",
    "SERVER_ARCHIVE",
    "LocalBeacon",
    "ServerBeacon",
    "create_remote",
    "live_log",
    "parse_log",
]

CHAIN = "local-witness"
ARCHIVE = f"evidence/witness/local/{LOG_NAME}"
SERVER_ARCHIVE = f"evidence/witness/server/{LOG_NAME}"


def create_remote(path: Path) -> None:
    """A bare repository with the witness's hook."""
    import git

    repository = git.Repo.init(path, bare=True, initial_branch="main")
    with repository.config_writer() as config:
        config.set_value("receive", "advertiseAtomic", "true")
        config.set_value("core", "logAllRefUpdates", "true")
    install_hook(path, "post-receive")


def live_log(url: str) -> bytes | None:
    """The log beside a remote on this machine; None where it is not here."""
    path = Path(url.removeprefix("file://")) / "trap-witness" / LOG_NAME
    try:
        if "://" in url.removeprefix("file://") or not path.is_file():
            return None
    except OSError:  # a name that no file can have
        return None
    if path.stat().st_size > MAX_LOG_BYTES:
        raise WitnessError("the push log is too large", where=str(path))
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1]  # a push may be writing its line just now


class LocalBeacon(Beacon):
    """The local witness's beacon, read from its push log."""

    chain = CHAIN
    _source = ARCHIVE

    def __init__(self, rows: Sequence[PushRow] = ()) -> None:
        self._rows = rows

    def promise(self) -> BeaconPromise:
        """The round to freeze: 0, drawn by the hook at the push."""
        return BeaconPromise(self.chain, 0)

    def value(self, promise: BeaconPromise, tag: str) -> BeaconValue | None:
        """The value drawn for a tag, None while there is none."""
        drawn = [row for row in rows_of(self._rows, f"refs/tags/{tag}") if row.beacon]
        if promise != self.promise() or not drawn:
            return None
        return BeaconValue(self.chain, 0, str(drawn[0].beacon), f"{self._source} row {drawn[0].id}")


class ServerBeacon(LocalBeacon):
    """A witness server's beacon: the same, under a chain named by its key.

    `source` says where the log was read.
    """

    def __init__(self, public_key: str, rows: Sequence[PushRow] = (), source: str = SERVER_ARCHIVE) -> None:
        super().__init__(rows)
        self.chain = chain_name(public_key)
        self._source = source
