"""The local witness: a bare repository whose hook logs pushes and draws.

It lies on the author's own machine, so it earns at most "registered": the
author could recreate it. Its rows have the fields of GitHub's activity log.
"""

from __future__ import annotations

from pathlib import Path

from registry.errors import WitnessError
from registry.witness.hooks import install_hook
from registry.witness.log import LOG_NAME, MAX_LOG_BYTES

CHAIN = "local-witness"


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
