"""The stubs of engines speak as the engines do, and go wrong as they say."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.engines.faults import Fault
from tests.engines.openai_stub import OpenAIStub
from tests.engines.prefix_cache import PrefixCache
from tests.engines.sglang_stub import SGLangStub
from tests.engines.stub import EngineStub, StubSettings
from tests.engines.vllm_stub import VLLMStub, settings_of

ROOT = Path(__file__).parents[2]
RECORDED = json.loads(Path(__file__).with_name("recorded_vllm.json").read_text())
PROMPT = list(range(10, 110))


@asynccontextmanager
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield session


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def order(stub: EngineStub, prompt: list[int], output_tokens: int = 3) -> tuple[str, dict[str, Any]]:
    """Where a turn is posted, and its body."""
    if isinstance(stub, SGLangStub):
        sampling = {"max_new_tokens": output_tokens, "ignore_eos": True, "temperature": 0}
        return "/generate", {"input_ids": prompt, "sampling_params": sampling, "stream": True}
    body = {"model": "m", "prompt": prompt, "max_tokens": output_tokens, "ignore_eos": True, "temperature": 0}
    return "/v1/completions", {
        **body,
        "return_token_ids": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def ask(stub: EngineStub, prompt: list[int] = PROMPT, output_tokens: int = 3) -> tuple[int, bytes]:
    path, body = order(stub, prompt, output_tokens)
    async with client() as http, http.post(stub.url + path, json=body) as answer:
        return answer.status, await answer.read()


def events(body: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def form(value: Any) -> Any:
    """Keys and kinds of a JSON value."""
    if isinstance(value, dict):
        return {key: form(inner) for key, inner in value.items()}
    return [form(inner) for inner in value[:1]] if isinstance(value, list) else type(value).__name__


def cached_tokens(stub: EngineStub, body: bytes) -> Any:
    last = events(body)[-1]
    if isinstance(stub, SGLangStub):
        return last["meta_info"].get("cached_tokens", "absent")
    details = last["usage"]["prompt_tokens_details"]
    return details if details is None else details.get("cached_tokens", "absent")


def test_a_vllm_stream_has_the_form_that_a_real_one_had() -> None:
    async def test() -> None:
        async with VLLMStub() as stub:
            status, body = await ask(stub)
            _, again = await ask(stub)
        assert status == 200
        found = events(body)
        assert [form(event) for event in found] == [form(event) for event in RECORDED["events"]]
        assert found[0]["choices"][0]["prompt_token_ids"] == PROMPT
        assert found[-1]["usage"] == RECORDED["events"][-1]["usage"]
        assert events(again)[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == RECORDED["cached_tokens_again"]

    run(test)


def test_vllm_counts_what_it_found_in_its_cache() -> None:
    async def test() -> None:
        async with VLLMStub() as stub, client() as http:
            for _ in range(3):
                await ask(stub)
            async with http.get(stub.url + "/metrics") as answer:
                families = list(text_string_to_metric_families(await answer.text()))
            samples = {sample.name: sample for family in families for sample in family.samples}
            # Only cache tiers are missing: a stub has one.
            for name, labels in RECORDED["metrics"].items():
                if "cached_by_source" not in name:
                    assert sorted(samples[name].labels) == labels
            assert samples["vllm:prefix_cache_queries_total"].value == 300
            assert samples["vllm:prefix_cache_hits_total"].value == 192
            assert samples["vllm:generation_tokens_total"].value == 9
            async with http.get(stub.url + "/version") as answer:
                assert await answer.json() == {"version": "0.32.0"}

    run(test)


def test_a_later_turn_finds_its_sessions_blocks_another_salt_none() -> None:
    async def test() -> None:
        async with VLLMStub() as stub, client() as http:
            first = events((await ask(stub, PROMPT, 30))[1])
            outputs = [event["choices"][0]["token_ids"][0] for event in first[:-1]]
            # 129 tokens were computed: the last output's are not there.
            _, body = await ask(stub, PROMPT + outputs + PROMPT)
            assert cached_tokens(stub, body) == 128
            path, body_sent = order(stub, PROMPT)
            async with http.post(stub.url + path, json={**body_sent, "cache_salt": "another"}) as answer:
                assert cached_tokens(stub, await answer.read()) == 0

    run(test)


def test_sglang_events_hold_all_so_far_and_a_page_is_a_token() -> None:
    async def test() -> None:
        async with SGLangStub(StubSettings(block_tokens=1)) as stub:
            found = events((await ask(stub))[1])
            assert [len(event["output_ids"]) for event in found] == [1, 2, 3]
            assert [event["meta_info"]["completion_tokens"] for event in found] == [1, 2, 3]
            assert ["e2e_latency" in event["meta_info"] for event in found] == [False, False, True]
            assert cached_tokens(stub, (await ask(stub))[1]) == len(PROMPT) - 1

    run(test)


@pytest.mark.parametrize("kind", [VLLMStub, SGLangStub])
def test_a_cache_is_emptied_only_when_idle(kind: type[EngineStub]) -> None:
    path = "/flush_cache" if kind is SGLangStub else "/reset_prefix_cache"

    async def flush(stub: EngineStub, query: str = "") -> tuple[int, str]:
        async with client() as http, http.post(stub.url + path + query) as answer:
            return answer.status, await answer.text()

    async def test() -> None:
        async with kind() as stub:
            await ask(stub)
            stub.settings.output_token_s = 0.05
            turn = asyncio.create_task(ask(stub))
            while not stub.busy:
                await asyncio.sleep(0.001)
            refused = await flush(stub)
            assert refused == ((400, "Flush cache failed.\n") if kind is SGLangStub else (200, '{"success": false}'))
            if kind is SGLangStub:
                assert (await flush(stub, "?timeout=0.01"))[0] == 400
                assert ((await flush(stub, "?timeout=30"))[0] == 200 and turn.done()) or not stub.busy
            await turn
            assert (await flush(stub))[0] == 200 and stub.flushes
            stub.settings.output_token_s = 0.0
            assert cached_tokens(stub, (await ask(stub))[1]) == 0
            stub.faults = {Fault.NEVER_FLUSHED}
            assert await flush(stub) == refused

    run(test)


@pytest.mark.parametrize("kind", [VLLMStub, SGLangStub, OpenAIStub])
def test_faults_in_what_is_said(kind: type[EngineStub]) -> None:
    async def test() -> None:
        async with kind(StubSettings(faults=set(Fault), good_turns=1)) as stub:
            assert len(events((await ask(stub))[1])) >= 3
            stub.faults = {Fault.NO_CACHED_TOKENS}
            assert cached_tokens(stub, (await ask(stub))[1]) == "absent"
            stub.faults = {Fault.NULL_DETAILS}
            assert cached_tokens(stub, (await ask(stub))[1]) == (None if kind is not SGLangStub else "absent")
            stub.faults = {Fault.FEW_TOKENS}
            few = events((await ask(stub, PROMPT, 5))[1])[-1]
            assert (few.get("usage") or few.get("meta_info"))["completion_tokens"] == 4
            stub.faults = {Fault.WRONG_PROMPT_COUNT}
            wrong = events((await ask(stub))[1])[-1]
            assert (wrong.get("usage") or wrong.get("meta_info"))["prompt_tokens"] == len(PROMPT) + 1

    run(test)


@pytest.mark.parametrize("kind", [VLLMStub, SGLangStub])
def test_counters_that_are_absent(kind: type[EngineStub]) -> None:
    async def test() -> None:
        async with kind() as stub, client() as http:
            await ask(stub)
            for faults, kinds in (((), {"counter", "gauge"}), ({Fault.NO_COUNTERS}, {"gauge"})):
                stub.faults = set(faults)
                async with http.get(stub.url + "/metrics") as answer:
                    families = list(text_string_to_metric_families(await answer.text()))
                assert {family.type for family in families} == kinds

    run(test)


@pytest.mark.parametrize("kind", [VLLMStub, SGLangStub, OpenAIStub])
def test_faults_in_how_it_is_sent(kind: type[EngineStub]) -> None:
    async def test() -> None:
        async with kind(StubSettings(huge_line_bytes=100_000)) as stub:
            for fault, seen in (
                (Fault.EMPTY, lambda body: body == b""),
                (Fault.GARBAGE, lambda body: b"\xff\xfe" in body),
                (Fault.HUGE_LINE, lambda body: max(map(len, body.split(b"\n"))) > 100_000),
                (Fault.CUT_LINE, lambda body: b"[DONE]" not in body and not body.endswith(b"\n")),
                (Fault.STREAM_ERROR, lambda body: "error" in events(body)[1]),
                (Fault.SPLIT_UTF8, lambda body: len(events(body)) >= 3 and "é".encode() in body),
            ):
                stub.faults = {fault}
                status, body = await ask(stub)
                assert status == 200 and seen(body), fault
            stub.faults = {Fault.HTTP_500}
            status, body = await ask(stub)
            assert status == 500 and "error" in json.loads(body)
            stub.faults = {Fault.DROP}
            with pytest.raises(aiohttp.ClientPayloadError):
                await ask(stub)
            stub.faults = {Fault.REFUSE}
            await ask(stub)
            with pytest.raises(aiohttp.ClientConnectorError):
                await ask(stub)

    run(test)


@pytest.mark.parametrize("kind", [VLLMStub, SGLangStub])
def test_an_answer_that_never_comes_or_stops_coming(kind: type[EngineStub]) -> None:
    async def test() -> None:
        async with kind() as stub, client() as http:
            path, body = order(stub, PROMPT)
            for fault, read in ((Fault.HANG, 0), (Fault.HANG_MIDWAY, 1)):
                stub.faults = {fault}
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2), http.post(stub.url + path, json=body) as answer:
                        assert read
                        assert (await answer.content.readline()).startswith(b"data: {")
                        await answer.content.readline()
                        await answer.content.readline()

    run(test)


def test_a_character_really_comes_in_two_pieces() -> None:
    async def test() -> None:
        async with VLLMStub(StubSettings(faults={Fault.SPLIT_UTF8})) as stub, client() as http:
            path, body = order(stub, PROMPT)
            async with http.post(stub.url + path, json=body) as answer:
                pieces = [piece async for piece in answer.content.iter_any()]
        assert any(piece.endswith("é".encode()[:1]) for piece in pieces)

    run(test)


def test_waiting_turns_are_seen_and_what_was_refused_runs_nothing() -> None:
    async def test() -> None:
        async with VLLMStub(StubSettings(most_running=1, longest_context_tokens=200)) as stub:
            stub.settings.output_token_s = 0.02
            turns = [asyncio.create_task(ask(stub)) for _ in range(3)]
            while stub.waiting < 2:
                await asyncio.sleep(0.001)
            assert stub.running == 1
            await asyncio.gather(*turns)
            assert (stub.running, stub.waiting) == (0, 0)
            status, body = await ask(stub, PROMPT * 2)
            assert status == 400 and json.loads(body)["error"]["code"] == 400
            assert (await ask(stub, []))[0] == 400
            assert len(stub.turns) == 3

    run(test)


def test_what_sglang_refuses() -> None:
    async def test() -> None:
        async with SGLangStub(StubSettings(longest_context_tokens=50)) as stub, client() as http:
            # Too long: the real one says so with status 200, in the stream.
            status, body = await ask(stub)
            assert status == 200 and events(body)[0]["error"]["code"] == 400
            path, body_sent = order(stub, PROMPT[:20])
            async with http.post(stub.url + path, json={**body_sent, "bogus": 1}) as answer:
                assert answer.status == 200 and len(events(await answer.read())) == 3
            async with http.post(stub.url + path, json={**body_sent, "sampling_params": {"bogus": 1}}) as answer:
                assert answer.status == 400 and "`bogus`" in (await answer.json())["error"]
            assert len(stub.turns) == 1

    run(test)


def test_chat_and_answers_without_a_stream() -> None:
    async def test() -> None:
        async with OpenAIStub() as stub, client() as http:
            messages = [{"role": "user", "content": "one two " * 40}]
            chat = {"model": "m", "messages": messages, "max_tokens": 2}
            async with http.post(stub.url + "/v1/chat/completions", json=chat) as answer:
                whole = await answer.json()
            assert whole["usage"]["prompt_tokens"] == 81
            assert len(whole["choices"][0]["message"]["content"].split()) == 2
            async with http.post(stub.url + "/v1/chat/completions", json={**chat, "stream": True}) as answer:
                deltas = events(await answer.read())
            assert (
                "".join(event["choices"][0]["delta"]["content"] for event in deltas)
                == (whole["choices"][0]["message"]["content"])
            )
            async with http.post(stub.url + "/v1/chat/completions", json={**chat, "model": "x"}) as answer:
                assert answer.status == 404

    run(test)


def test_the_least_recently_used_blocks_go_first_and_a_prefix_from_its_end() -> None:
    cache = PrefixCache(block_tokens=10, pool_tokens=60)
    one, two, three = ([token] * 30 for token in (1, 2, 3))
    for prompt in (one, two):
        cache.keep(prompt)
    assert cache.cached_tokens([*one, 9]) == 30 and cache.cached_tokens(one) == 20
    cache.keep(one)
    cache.keep(three[:10])
    assert [cache.cached_tokens([*prompt, 9]) for prompt in (one, two, three[:10])] == [30, 20, 10]
    assert cache.evicted_tokens == 10 and cache.kept_tokens == 60


def test_vllms_own_arguments_make_the_stub() -> None:
    arguments = ["--model", "x", "--block-size", "16", "--num-gpu-blocks-override", "10", "--seed", "3"]
    found = settings_of([*arguments, "--no-enable-prefix-caching"], {})
    assert (found.block_tokens, found.pool_tokens, found.caching) == (16, 160, False)
    assert not found.cached_tokens_told and not found.can_flush
    found = settings_of(["--enable-prompt-tokens-details", "--max-model-len", "99"], {"VLLM_SERVER_DEV_MODE": "1"})
    assert found.cached_tokens_told and found.can_flush and found.caching and found.longest_context_tokens == 99


def program(name: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"tests.engines.{name}", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_stub_is_a_program_that_takes_the_engines_arguments() -> None:
    arguments = ["--model", "x", "--served-model-name", "m", "--port", "0", "--seed", "1", "--max-num-seqs", "4"]
    with program("vllm_stub", *arguments, "--stub-fault", "http-500", "--stub-children", "1") as process:
        assert process.stdout and "loading" in process.stdout.readline()
        url = process.stdout.readline().split()[-1]

        async def test() -> None:
            async with client() as http:
                async with http.get(url + "/health") as answer:
                    assert answer.status == 200
                path, body = order(VLLMStub(), PROMPT)
                async with http.post(url + path, json=body) as answer:
                    assert answer.status == 500
                # Only in vLLM's development mode.
                async with http.post(url + "/reset_prefix_cache") as answer:
                    assert answer.status == 404

        run(test)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        assert len(children) == 1


def test_a_stub_that_cannot_start_says_so() -> None:
    with program("sglang_stub", "--stub-exit", "3") as process:
        _, stderr = process.communicate(timeout=10)
    assert process.returncode == 3 and "cannot start" in stderr
