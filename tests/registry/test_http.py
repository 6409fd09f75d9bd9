"""HTTP with hostile servers: every answer has a cap, a deadline and words."""

from __future__ import annotations

import contextlib
import gzip
import io
import socket
import threading
from collections.abc import Iterator

import pytest

from registry.errors import CapExceeded, TrapError, WitnessError
from registry.witness import http
from tests.loopback import Answer, LoopbackServer


def served(answer: Answer, **options: object) -> bytes:
    with LoopbackServer(lambda _: answer) as server:
        return http.get(f"{server.url}/x", hosts={server.host}, sleep=lambda _: None, **options)  # type: ignore[arg-type]


def test_an_answer_is_returned_whole() -> None:
    assert served(Answer(body=b"x" * 300_000)) == b"x" * 300_000


def test_a_body_is_posted_with_its_type() -> None:
    with LoopbackServer(lambda question: Answer(body=question.body[::-1])) as server:
        assert http.post(f"{server.url}/x", b"abc", hosts={server.host}, content_type="a/b") == b"cba"
    assert server.questions[0].headers["Content-Type"] == "a/b"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/x",
        "ftp://127.0.0.1/x",
        "https://user:secret@example.org/x",
        "https://example.org\\@evil.example/x",
        "https://exam ple.org/",
        "https://example.org/a\r\nX: y",
        "https://example.org:443443/",
        "http://127.0.0.1.example.org/",
        "http://localhost.example.org/",
        "https://ex\u0430mple.org/",
        "//example.org/x",
        "file:///etc/passwd",
        "",
    ],
)
def test_other_addresses_are_refused_unasked(url: str) -> None:
    with pytest.raises(WitnessError, match="not an address") as caught:
        http.get(url, hosts={"example.org", "127.0.0.1"})
    assert "secret" not in caught.value.diagnostics()


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://API.example.org/x?y=z", "api.example.org"),
        ("https://example.org:443", "example.org"),
        ("https://example.org:8443/", "example.org:8443"),
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://[::1]:8080/", "[::1]:8080"),
    ],
)
def test_the_host_of_an_address(url: str, host: str) -> None:
    assert http.host_of(url) == host


def test_a_host_outside_the_policy_is_not_asked() -> None:
    with LoopbackServer(lambda _: Answer()) as server:
        for hosts in ((), {"127.0.0.1"}, {f"localhost:{server.host[10:]}"}):
            with pytest.raises(WitnessError, match="not one that the policy names"):
                http.get(f"{server.url}/x?token=secret", hosts=hosts)
    assert server.questions == []


def test_no_redirect_is_followed() -> None:
    with LoopbackServer(lambda _: Answer()) as other, pytest.raises(http.StatusError, match="redirects") as caught:
        served(Answer(302, headers={"Location": f"{other.url}/y"}))
    assert (caught.value.status, other.questions) == (302, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 425])
def test_a_refusal_is_not_asked_again(status: int) -> None:
    with LoopbackServer(lambda _: Answer(status)) as server, pytest.raises(http.StatusError) as caught:
        http.get(f"{server.url}/x", hosts={server.host})
    assert (caught.value.status, len(server.questions)) == (status, 1)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_three_times(status: int) -> None:
    pauses: list[float] = []
    with LoopbackServer(lambda _: Answer(status)) as server, pytest.raises(http.StatusError) as caught:
        http.get(f"{server.url}/x", hosts={server.host}, sleep=pauses.append)
    assert (caught.value.status, len(server.questions), pauses) == (status, 3, [1.0, 2.0])


def test_a_server_that_recovers_is_believed() -> None:
    pauses: list[float] = []
    answers = [Answer(503, b"part of an earlier answer", headers={"Retry-After": "99999"}), Answer(body=b"{}")]
    with LoopbackServer(lambda _: answers.pop(0)) as server:
        assert http.get(f"{server.url}/x", hosts={server.host}, sleep=pauses.append) == b"{}"
    assert pauses == [10.0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(body=b"x" * 101), "too large"),
        (Answer(body=b"x", length=10**15), "too large"),
        (Answer(body=b"x" * 10, length=50), "breaks off"),
        (Answer(body=gzip.compress(bytes(10_000)), headers={"Content-Encoding": "gzip"}), "compressed"),
        (Answer(body=b"<html>", kind="text/html; charset=utf-8"), "not application/json"),
        (Answer(body=b"{}", kind="text/plain"), "not application/json"),
    ],
)
def test_an_unusable_answer_is_refused(answer: Answer, reason: str) -> None:
    with pytest.raises(TrapError, match=reason):
        served(answer, cap_bytes=100, types=("application/json",))


def test_html_is_refused_where_no_type_is_named() -> None:
    with pytest.raises(WitnessError, match="not data"):
        served(Answer(body=b"<html>", kind="text/html"))


def test_a_file_is_filled_afresh_after_a_failed_try() -> None:
    answers = [Answer(500), Answer(body=b"whole")]
    into = io.BytesIO(b"an earlier, longer text")
    with LoopbackServer(lambda _: answers.pop(0)) as server:
        url = f"{server.url}/x"
        http.download(url, into, hosts={server.host}, cap_bytes=9, deadline_s=10, sleep=lambda _: None)
        assert into.getvalue() == b"whole"
        answers.append(Answer(body=b"more than nine"))
        with pytest.raises(CapExceeded):
            http.download(url, into, hosts={server.host}, cap_bytes=9, deadline_s=10)


@contextlib.contextmanager
def raw_server(*pieces: bytes, forever: bytes = b"") -> Iterator[str]:
    """Sends pieces, then `forever` drop by drop until the peer or the test leaves."""
    stop = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                for piece in pieces:
                    peer.sendall(piece)
                while forever and not stop.wait(0.01):
                    peer.sendall(forever)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("head", "drip"), [(b"HTTP/1.1 200 OK\r\nX-", b"y"), (b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", b"z")]
)
def test_a_dripping_server_is_left_at_the_deadline(head: bytes, drip: bytes) -> None:
    with raw_server(head, forever=drip) as host, pytest.raises(WitnessError, match="took too long"):
        http.get(f"http://{host}/x", hosts={host}, deadline_s=0.1)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_words(said: bytes) -> None:
    with raw_server(said) as host, pytest.raises(WitnessError) as caught:
        http.get(f"http://{host}/x?token=secret", hosts={host}, deadline_s=5)
    assert caught.value.where == f"http://{host}/x"


def test_chunks_are_put_together_under_the_cap() -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n3\r\nfgh\r\n0\r\n\r\n"
    with raw_server(chunks) as host:
        assert http.get(f"http://{host}/x", hosts={host}) == b"abcdefgh"
    with raw_server(chunks) as host, pytest.raises(CapExceeded):
        http.get(f"http://{host}/x", hosts={host}, cap_bytes=7)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(WitnessError, match="could not be reached"):
        http.get(f"http://{host}/x", hosts={host})
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@{host}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(WitnessError, match="could not be reached") as caught:
        http.get("https://api.example.org/x", hosts={"api.example.org"})
    assert "secret" not in caught.value.diagnostics()


def test_loopback_goes_round_any_proxy_and_sends_no_stored_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with LoopbackServer(lambda _: Answer(headers={"Set-Cookie": "a=b"})) as server:
        http.get(server.url, hosts={server.host})
        http.get(server.url, hosts={server.host})
    for question in server.questions:
        assert not {"Authorization", "Cookie"} & set(question.headers)
        assert question.headers["Accept-Encoding"] == "identity"
