"""Metrics over real HTTP on the loopback: addresses, hops, caps, deadlines."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.errors import EngineError, TrapError
from runners.engines import scrape as module
from runners.engines.scrape import metrics_url, scrape
from tests.loopback import Answer, LoopbackServer, Question

IDLE = (Path(__file__).parent / "data" / "vllm-idle.prom").read_bytes()
KIND = "text/plain; version=0.0.4"


def served(answer: Callable[[Question], Answer]) -> LoopbackServer:
    return LoopbackServer(answer)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://h:8000", "http://h:8000/metrics"),
        (" http://h:8000/ ", "http://h:8000/metrics"),
        ("https://H/metrics/", "https://H/metrics"),
        ("http://[::1]:30000/engine", "http://[::1]:30000/engine/metrics"),
    ],
)
def test_an_engines_address_leads_to_its_metrics(given: str, asked: str) -> None:
    assert metrics_url(given) == asked


@pytest.mark.parametrize(
    "url",
    [
        "h:8000",
        "ftp://h",
        "http://",
        "http://a b",
        "http://h:0",
        "http://h:70000",
        "http://h/?a",
        "http://h/#a",
        "http://h\n/",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(TrapError, match="not the address of an engine") as caught:
        metrics_url(url)
    assert not isinstance(caught.value, EngineError) and caught.value.exit_code == 2


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(TrapError) as caught:
        metrics_url("http://me:secret@h:8000")
    assert "secret" not in caught.value.diagnostics()


def test_one_question_is_asked_and_nothing_sent_with_it() -> None:
    with served(lambda _: Answer(200, IDLE, KIND)) as server:
        assert scrape(metrics_url(server.url)).pool_tokens == 6_400
    (question,) = server.questions
    assert (question.method, question.path, question.body) == ("GET", "/metrics", b"")
    assert not {"Authorization", "Cookie"} & set(question.headers)


def test_a_redirect_on_the_same_host_is_followed() -> None:
    def answer(question: Question) -> Answer:
        if question.path == "/metrics":
            return Answer(307, headers={"Location": "/metrics/"})
        return Answer(200, IDLE, KIND)

    with served(answer) as server:
        assert scrape(f"{server.url}/metrics").kind == "vllm"


@pytest.mark.parametrize(
    "location", ["http://elsewhere.invalid/metrics", "//localhost/x", "ftp://127.0.0.1/", "http://[", ""]
)
def test_a_redirect_elsewhere_is_not_followed(location: str) -> None:
    with (
        served(lambda _: Answer(302, headers={"Location": location})) as server,
        pytest.raises(EngineError, match="elsewhere"),
    ):
        scrape(f"{server.url}/metrics")
    assert len(server.questions) == 1


def test_redirects_in_circles_end() -> None:
    with (
        served(lambda _: Answer(302, headers={"Location": "/metrics"})) as server,
        pytest.raises(EngineError, match="circles"),
    ):
        scrape(f"{server.url}/metrics")
    assert len(server.questions) == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(404, b"not here"), "answered 404"),
        (Answer(500, b"\x1b[31m"), "answered 500"),
        (Answer(200, b"<html></html>", "text/html"), "no Prometheus text"),
        (Answer(200, IDLE, KIND, {"Content-Encoding": "gzip"}), "compressed"),
        (Answer(200, IDLE, KIND, length=10_000_000), "not HTTP"),
        (Answer(200, b"vllm:x 1\n" * 500_000, KIND), "longer than any engine's"),
    ],
)
def test_an_answer_that_is_no_engines(answer: Answer, words: str) -> None:
    def once(_: Question) -> Answer:
        return answer

    with served(once) as server, pytest.raises(EngineError, match=words) as caught:
        scrape(f"{server.url}/metrics", timeout_s=2)
    assert caught.value.where == f"{server.url}/metrics"
    assert "\x1b" not in caught.value.diagnostics()


def test_an_engine_that_says_nothing_is_given_up() -> None:
    end = threading.Event()

    def answer(_: Question) -> Answer:
        end.wait(20)
        return Answer(200, IDLE, KIND)

    with served(answer) as server:
        with pytest.raises(EngineError, match="in time"):
            scrape(f"{server.url}/metrics", timeout_s=0.1)
        end.set()


def test_an_engine_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EngineError, match="cannot be reached") as caught:
        scrape(f"http://127.0.0.1:{port}/metrics")
    assert caught.value.remedy


def test_an_answer_that_is_no_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4_096)
                connection.sendall(b"SSH-2.0-OpenSSH_9.0\r\n\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        with pytest.raises(EngineError, match="not HTTP"):
            scrape(f"http://127.0.0.1:{listener.getsockname()[1]}/metrics", timeout_s=5)
        thread.join()


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    with served(lambda _: Answer(200, IDLE, KIND)) as server:
        assert scrape(f"{server.url}/metrics").kind == "vllm"


def test_the_deadline_is_shorter_than_the_interval_between_samples() -> None:
    assert module.TIMEOUT_S <= 10
