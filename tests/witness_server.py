"""A real witness server on loopback, in this process, for tests."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from registry.witness.server.application import Application
from registry.witness.server.authentication import Gate
from registry.witness.server.repositories import Repository, WitnessFolder
from registry.witness.server.serving import MAX_BODY_BYTES, Server


class WitnessServer:
    """Serves a folder on a free port while the context lasts.

    `url` is `http://127.0.0.1:PORT`, `key` the public key's text; `told` holds
    the lines that an operator would see.
    """

    def __init__(
        self,
        root: Path,
        *names: str,
        token: str | None = None,
        private: bool = False,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self.folder = WitnessFolder(root)
        for name in names:
            self.folder.create(name)
        self.told: list[str] = []
        application = Application(self.folder, Gate(token, private=private), say=self.told.append)
        self.key = application.public_key
        self._server = Server(application, "127.0.0.1", 0, max_body_bytes=max_body_bytes)
        self._thread = threading.Thread(target=self._server.run)
        self.url = self._server.url

    def __enter__(self) -> WitnessServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def remote(self, name: str) -> str:
        """The URL that git pushes to."""
        return f"{self.url}/{name}.git"

    def repository(self, name: str) -> Repository:
        """The repository behind a name."""
        found = self.folder.find(*name.split("/"))
        assert found is not None
        return found
