"""`trapkit gate serve` as a program of its own: ready, stopped, refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.loopback import Answer, LoopbackServer, Question
from tests.support import command

ROOT = Path(__file__).parents[2]


@contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    program = [sys.executable, "-m", "cli.app", "gate", "serve", "--port", "0", *options]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert line.startswith("gate ready on http://127.0.0.1:"), line or process.stderr.read()
            yield process, line.split()[3]
        finally:
            process.kill()


def ask(url: str, session: str) -> tuple[int, bytes, str | None]:
    headers = {"X-Session-Id": session, "Content-Type": "application/json", "Authorization": "Bearer very-secret"}
    request = urllib.request.Request(url + "/v1/completions", b'{"prompt":"a"}', headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read(), None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers["Retry-After"]


def waiting(url: str) -> list[str]:
    with urllib.request.urlopen(url + "/gate/sessions", timeout=60) as answer:
        return sorted(session["state"] for session in json.load(answer)["sessions"])


def test_sigterm_lets_running_requests_finish_and_turns_waiting_ones_away(tmp_path: Path) -> None:
    release = threading.Event()

    def answer(question: Question) -> Answer:
        release.wait(30)
        return Answer(body=b'{"whole": true}')

    log = tmp_path / "events.jsonl"
    answers: dict[str, tuple[int, bytes, str | None]] = {}
    with (
        LoopbackServer(answer) as engine,
        served("--upstream", engine.url, "--cap", "1", "--log", str(log)) as (
            process,
            url,
        ),
    ):
        threads = []
        for session, states in (("a", ["passing"]), ("b", ["passing", "waiting"])):
            thread = threading.Thread(target=lambda name=session: answers.update({name: ask(url, name)}))
            thread.start()
            threads.append(thread)
            while waiting(url) != states:
                pass
        process.send_signal(signal.SIGTERM)
        threads[1].join()
        assert answers["b"][0] == 503
        assert answers["b"][2] == "30"
        assert "a" not in answers
        release.set()
        threads[0].join()
        assert answers["a"][:2] == (200, b'{"whole": true}')
        assert process.wait(30) == 0
        out, err = process.communicate()
        assert "secret" not in out + err
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["engaged", "admitted", "refused"]
    assert len({line["session"] for line in lines}) == 3
    assert "secret" not in log.read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--upstream", "nonsense", "--cap", "1"], "no URL of an engine"),
        (["--upstream", "http://127.0.0.1:1", "--cap", "1", "--log", "/nowhere/at/all"], "log cannot be written"),
        (["--upstream", "http://127.0.0.1:1", "--cap", "1", "--port", "TAKEN"], "the port is in use"),
        (["--upstream", "http://127.0.0.1:1", "--cap", "0"], "--cap"),
    ],
)
def test_what_cannot_be_served_is_told_in_words(tmp_path: Path, options: list[str], told: str) -> None:
    with LoopbackServer(lambda _: Answer()) as other:
        taken = other.host.rpartition(":")[2]
        done = command(tmp_path, "gate", "serve", *(taken if word == "TAKEN" else word for word in options))
    assert done.code == 2
    assert told in done.err
