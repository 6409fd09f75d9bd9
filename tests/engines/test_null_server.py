"""The null engine of the benchmarks answers as the adapter reads, and tells when it was asked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from runners.engines.vllm import VLLMAdapter

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, subprocess.Popen[str]]]:
    receipts = tmp_path / "receipts.jsonl"
    command = [sys.executable, "benchmarks/null_server.py", "--service-s", "0.05", "--receipts", str(receipts)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().split()[-1], receipts, process
        process.send_signal(signal.SIGTERM)


def test_turns_are_answered_as_the_adapter_reads_and_their_times_are_told(
    server: tuple[str, Path, subprocess.Popen[str]],
) -> None:
    url, file, process = server
    adapter = VLLMAdapter()
    prompt = b",".join(b"%d" % (number % 1000) for number in range(10_000))
    before_s = time.monotonic()
    with requests.Session() as session:
        for name in ("one", "two", "one"):
            body = adapter.body("m", prompt, 5)
            answer = session.post(url + adapter.path, data=body, headers={"X-Session-Id": name}, timeout=5)
            reply = adapter.reply(answer.content)
            assert (reply.prompt_tokens, len(reply.output_ids), reply.cached_tokens) == (10_000, 5, 0)
            first = answer.content.partition(b"\n")[0]
            assert json.loads(first[6:])["choices"][0]["prompt_token_ids"][-1] == 999
        told = session.get(url + "/receipts", timeout=5).content
        assert session.get(url + "/load", timeout=5).json()["turns"] == 3
        assert session.get(url + "/nothing", timeout=5).status_code == 404
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    rows = [json.loads(line) for line in told.splitlines()]
    assert file.read_bytes() == told
    assert [row[:2] for row in rows] == [["one", 1], ["two", 1], ["one", 2]]
    times = [time_s for row in rows for time_s in row[2:5]]
    assert before_s < times[0] and times == sorted(times) and times[-1] < time.monotonic()
    assert all(row[4] - row[3] >= 0.05 and row[5] == 10_000 for row in rows)
