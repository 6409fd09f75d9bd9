"""Runs the application on a socket, by waitress."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from registry.errors import WitnessError
from registry.witness.server.authentication import VARIABLE

MAX_BODY_BYTES = 2_147_483_648
_MAX_HEADER_BYTES = 65_536
_IDLE_S = 120
_THREADS = 8
_CONNECTIONS = 200
_WRITE_AHEAD_BYTES = 67_108_864
_LAST_REQUESTS_S = 30.0


def check_exposure(host: str, *, token: bool, open_to_all: bool, url: str | None = None) -> None:
    """WitnessError where strangers could push: an address or URL beyond this
    machine, no token, and nobody said that it shall be so.
    """
    if not token and not open_to_all and not (is_loopback(host) and url is None):
        raise WitnessError(
            "anybody who reaches this address could push",
            value=url or host,
            remedy=f"set {VARIABLE}, or allow it: --open",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """An application on a listening socket. `run` blocks until `stop`."""

    def __init__(
        self, application: Callable[..., Any], host: str, port: int, *, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        import waitress

        # waitress prints tracebacks and warnings of its own on this logger: one line each is enough.
        logging.getLogger("waitress").setLevel(logging.ERROR)
        self._sockets: dict[int, Any] = {}
        self._stopping = threading.Event()
        listening = _listen(host, port)
        self.host, self.port = listening.getsockname()[:2]
        self._server = waitress.create_server(
            application,
            self._sockets,
            sockets=[listening],
            threads=_THREADS,
            connection_limit=_CONNECTIONS,
            channel_timeout=_IDLE_S,
            max_request_body_size=max_body_bytes,
            max_request_header_size=_MAX_HEADER_BYTES,
            outbuf_high_watermark=_WRITE_AHEAD_BYTES,
            expose_tracebacks=False,
            log_socket_errors=False,
            ident="trap-witness",
            clear_untrusted_proxy_headers=True,
        )

    @property
    def url(self) -> str:
        """`http://host:port`, as reached on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def run(self) -> None:
        """Serve until told to stop; requests under way are then finished."""
        try:
            while not self._stopping.is_set():
                self._poll(1.0)
            self._server.accepting = False
            until = time.monotonic() + _LAST_REQUESTS_S
            while self._busy() and time.monotonic() < until:
                self._poll(0.05)
        finally:
            self._server.task_dispatcher.shutdown(timeout=1)
            self._server.asyncore.close_all(self._sockets)

    def _poll(self, timeout_s: float) -> None:
        self._server.asyncore.loop(timeout=timeout_s, map=self._sockets, use_poll=True, count=1)

    def _busy(self) -> bool:
        """Whether an answer is being made or sent."""
        return any(each.requests or each.total_outbufs_len for each in self._server.active_channels.values())

    def stop(self) -> None:
        """End `run`, from another thread or a signal handler."""
        self._stopping.set()
        self._server.pull_trigger()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise WitnessError(
            f"the server cannot listen: {error.args[-1]}",
            value=f"{host}:{port}",
            remedy="is the port in use? choose another: --port",
        ) from None
