"""The adapters against stubs that go wrong: what a turn comes to, and in which words;
which engines are refused before a run; what of an engine is published.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from registry.design import Arm, RunId
from registry.engine_setup import EngineSetup
from registry.errors import EngineError
from runners.engine_life import API_KEY, EngineFault, running
from runners.engine_run import EngineRun, run_on_engine
from runners.engines import errands as errands_module
from runners.engines.adapter import EngineOrder
from runners.engines.adapters import ADAPTERS
from runners.engines.errands import Errands
from runners.engines.facts import json_of
from runners.engines.process import engine_environment, program
from runners.load import sender as sender_module
from runners.load.clock import RunClock
from runners.load.records import TurnRow
from runners.load.sender import Sender, Target, TurnFailed
from runners.load.token_ids import Prompt, TokenSource
from tests.engines.faults import Fault
from tests.engines.openai_stub import OpenAIStub
from tests.engines.sglang_stub import SGLangStub
from tests.engines.stub import EngineStub, StubSettings, StubTurn
from tests.engines.vllm_stub import VLLMStub
from tests.runners.load_support import CELL, adapter_of, design_of, drive, in_thread, plan_of, refuted
from verifier.arm_checks import ARM_CHECKS
from verifier.check import Outcome
from verifier.engine_checks import check_counters, check_engine
from verifier.gate_checks import GATE_CHECKS
from verifier.run_checks import PLAN_CHECKS, RunContext
from verifier.run_report import frames_of

STUBS: dict[str, type[EngineStub]] = {"vllm": VLLMStub, "sglang": SGLangStub, "openai": OpenAIStub}
PROMPT_TOKENS, OUTPUT_TOKENS = 100, 3
KEY = "sk-not-to-be-told"

SILENT = "no cached tokens: the engine does not say how much it reused"
NOT_JSON = "an event of the stream is not JSON"
CUT_OFF = "the stream was cut off before its end"

TABLE: dict[Fault, str | None] = {
    Fault.NO_CACHED_TOKENS: SILENT,
    Fault.NULL_DETAILS: SILENT,
    Fault.NO_COUNTERS: None,
    Fault.NEVER_FLUSHED: None,
    Fault.CUT_LINE: NOT_JSON,
    Fault.SPLIT_UTF8: None,
    Fault.STREAM_ERROR: "the engine wrote an error into the stream",
    Fault.HTTP_500: "status 500: ",
    Fault.FEW_TOKENS: "wrong count: 2 output tokens, 3 were asked for",
    Fault.WRONG_PROMPT_COUNT: "wrong count: 101 prompt tokens, 100 were sent",
    Fault.HANG: "",
    Fault.HANG_MIDWAY: "",
    Fault.DROP: "connection lost",
    Fault.REFUSE: None,
    Fault.GARBAGE: NOT_JSON,
    Fault.HUGE_LINE: CUT_OFF,
    Fault.EMPTY: CUT_OFF,
}
"""The words of a turn's detail; None where it is answered, "" where it never ends."""


def test_every_fault_has_its_line() -> None:
    assert set(TABLE) == set(Fault)


async def ask(stub: EngineStub, row: TurnRow | None = None, headers: dict[str, str] | None = None) -> TurnRow:
    """One turn; its row, whatever became of it."""
    clock = RunClock()
    row = row or TurnRow("s", 1, "base", 0.0, PROMPT_TOKENS, 0)
    async with Sender(Target(stub.url, adapter_of(stub), "m", headers or {}), clock) as sender:
        try:
            reply = await asyncio.wait_for(
                sender.send(row, b",".join(b"%d" % n for n in range(PROMPT_TOKENS)), OUTPUT_TOKENS),
                0.3 if stub.faults & {Fault.HANG, Fault.HANG_MIDWAY} else 20,
            )
            row.outcome = "ok"
            assert len(reply.output_ids) == OUTPUT_TOKENS
        except TurnFailed as failed:
            row.outcome, row.detail = "error", str(failed)
        finally:
            assert sender.open_turns == 0
    return row


@pytest.mark.parametrize("name", STUBS)
def test_what_a_turn_comes_to(name: str) -> None:
    async def each(fault: Fault) -> TurnRow | None:
        async with STUBS[name](StubSettings(faults={fault})) as stub:
            try:
                return await ask(stub)
            except TimeoutError:
                return None

    async def all_of_them() -> list[TurnRow | None]:
        return await asyncio.gather(*map(each, TABLE))

    for (fault, words), row in zip(TABLE.items(), asyncio.run(all_of_them()), strict=True):
        if words == "":
            assert row is None, fault
            continue
        assert row is not None, fault
        if words is None:
            assert (row.outcome, row.detail) == ("ok", None), fault
            assert row.submit_s and row.first_token_s and row.done_s
            assert row.submit_s <= row.first_token_s <= row.done_s
        else:
            assert row.outcome == "error" and (row.detail or "").startswith(words), (fault, row.detail)
            assert row.done_s is not None and len(row.detail or "") < 400
            assert (row.detail or "").isprintable()


def test_an_engine_that_takes_no_connection() -> None:
    async def test() -> None:
        async with VLLMStub() as stub:
            await stub.refuse_new_connections()
            row = await ask(stub)
        assert (row.outcome, row.submit_s) == ("error", None)
        assert (row.detail or "").startswith("connection refused: ")

    asyncio.run(test())


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "MAX_STREAM_BYTES", 100_000)

    async def test() -> None:
        async with VLLMStub(StubSettings(faults={Fault.HUGE_LINE})) as stub:
            row = await ask(stub)
        assert row.detail == "an answer without end: more than 100000 bytes"

    asyncio.run(test())


def test_sglang_s_queue_time_says_when_a_turn_started() -> None:
    driven = asyncio.run(drive(Arm("A", population=4), design_of(Arm("A"), 0.6), kind=SGLangStub, most_running=1))
    done = driven.turns[driven.turns.outcome == "ok"]
    assert refuted(driven) == [] and len(done) > 4
    assert done.start_s.notna().all()
    assert ((done.submit_s <= done.start_s) & (done.start_s <= done.first_token_s)).all()
    assert (done.start_s - done.submit_s).max() > 0.003, "one at a time: the others queued"
    assert driven.readings(0.1, 0.6)["idle_from_first_token"] == 0.0


class Retracting(SGLangStub):
    def meta_info(self, turn: StubTurn) -> dict[str, Any]:
        turn.cached_tokens = len(turn.prompt) - 1
        own = {"num_retractions": 2, "cached_tokens": turn.cached_tokens}
        return {**super().meta_info(turn), **own}


def test_after_a_retraction_the_queue_time_is_not_believed() -> None:
    driven = asyncio.run(drive(Arm("A", population=2), design_of(Arm("A"), 0.4), kind=Retracting))
    done = driven.turns[driven.turns.outcome == "ok"]
    assert len(done) > 2 and done.start_s.isna().all()
    assert set(done.retractions) == {2}
    # It found its own prompt when it was admitted again: that was no reuse.
    assert (done.cached_tokens == done.reusable_tokens).all()
    assert done.detail.str.startswith("retracted: the engine says ").all()
    assert refuted(driven) == []


def setup_of(stub: EngineStub, **more: Any) -> EngineSetup:
    name = adapter_of(stub).name
    return EngineSetup(name, "m", 1000, 256, 64, url=stub.url, **{"hang_timeout_s": 20.0, **more})


def order_of(stub: EngineStub, caching: bool = True, **more: Any) -> EngineOrder:
    cell = replace(CELL, engine=adapter_of(stub).name, engine_version=stub.version)
    return EngineOrder(cell, setup_of(stub, **more), "m", caching, 200, 7)


SETTINGS = {"block_tokens": CELL.cache_block_tokens, "pool_tokens": CELL.pool_tokens}


def started(stub: EngineStub, folder: Path, caching: bool = True, **more: Any) -> EngineError | None:
    """What keeps the engine from its run; None where nothing does."""

    async def test() -> EngineError | None:
        async with stub:
            order = order_of(stub, caching, **more)
            if stub.version == "other":
                order = replace(order, cell=replace(order.cell, engine_version="0.32.0"))
            try:
                async with running(order, folder, bytes(32)) as engine:
                    assert engine.process is None and engine.command == ()
            except EngineError as error:
                return error
        return None

    return asyncio.run(test())


@pytest.mark.parametrize("name", ["vllm", "sglang", "openai"])
@pytest.mark.parametrize("caching", [True, False])
def test_the_registered_engine_is_taken_and_its_cache_emptied(name: str, caching: bool, tmp_path: Path) -> None:
    stub = STUBS[name](StubSettings(**SETTINGS, caching=caching))
    assert started(stub, tmp_path, caching) is None
    assert len(stub.turns) == 2 and stub.flushes == (name != "openai")
    assert stub.cache.kept_tokens == 0 or name == "openai"


@pytest.mark.parametrize("name", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("settings", "caching", "words"),
    [
        ({"faults": {Fault.NULL_DETAILS}}, True, f"does not answer a trial turn as NAME does: {SILENT}"),
        ({"faults": {Fault.FEW_TOKENS}}, True, "does not answer a trial turn as NAME does: wrong count"),
        ({"faults": {Fault.HTTP_500}}, True, "does not answer a trial turn as NAME does: status 500"),
        ({"faults": {Fault.HANG}}, True, "does not answer a trial turn as NAME does: nothing in 0.3 s"),
        ({"pool_tokens": 8192}, True, "the engine is not the registered one: its pool_tokens differs"),
        ({"caching": True}, False, "prefix"),
        ({"caching": False}, True, "prefix"),
        ({"faults": {Fault.NEVER_FLUSHED}}, True, "the engine did not empty its cache"),
    ],
)
def test_another_engine_than_registered_is_refused(
    name: str, settings: dict[str, Any], caching: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errands_module, "FLUSH_TRIES_S", 0.2)
    hangs = Fault.HANG in settings.get("faults", ())
    stub = STUBS[name](StubSettings(**{**SETTINGS, "caching": caching, **settings}))
    error = started(stub, tmp_path, caching, **({"hang_timeout_s": 0.3} if hangs else {}))
    assert error is not None and words.replace("NAME", name) in error.what
    assert getattr(error, "cause", None) is None, "no cause that a registration could exclude"


def test_sglang_s_cache_shows_in_the_trial_where_nothing_tells_it(tmp_path: Path) -> None:
    stub = SGLangStub(StubSettings(**SETTINGS, caching=True))
    error = started(stub, tmp_path, caching=False)
    assert error is not None and error.what == "the engine's prefix cache is on, the arm says otherwise"


@pytest.mark.parametrize(("version", "fits"), [("0.32.0", True), ("0.32.0+cpu", True), ("other", False)])
def test_the_version_is_the_registered_release(version: str, fits: bool, tmp_path: Path) -> None:
    stub = VLLMStub(StubSettings(**SETTINGS))
    stub.version = version

    async def test() -> str:
        async with stub:
            order = order_of(stub)
            order = replace(order, cell=replace(order.cell, engine_version="0.32.0"))
            try:
                async with running(order, tmp_path, bytes(32)):
                    return "taken"
            except EngineError as error:
                return error.what

    told = asyncio.run(test())
    assert told == ("taken" if fits else "the engine is not the registered one: its version differs")


def test_a_vllm_without_its_development_mode_says_what_to_set(tmp_path: Path) -> None:
    error = started(VLLMStub(StubSettings(**SETTINGS, can_flush=False)), tmp_path)
    assert error is not None and "VLLM_SERVER_DEV_MODE=1" in (error.remedy or "")


def test_nobody_at_the_url_is_an_engine_that_never_got_ready(tmp_path: Path) -> None:
    async def test() -> EngineFault:
        async with VLLMStub() as stub:
            order = order_of(stub)
        with pytest.raises(EngineFault) as caught:
            async with running(order, tmp_path, bytes(32)):
                pass
        return caught.value

    fault = asyncio.run(test())
    assert fault.cause == "engine_never_ready" and "nobody answers" in fault.what


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_a_busy_engine_is_waited_for_before_its_cache_is_emptied(name: str) -> None:
    async def test() -> None:
        async with STUBS[name](StubSettings(output_token_s=0.1)) as stub, Errands(stub.url, {}) as errands:
            turn = asyncio.ensure_future(ask(stub))
            while not stub.busy:
                await asyncio.sleep(0.01)
            await asyncio.wait_for(errands.flush(adapter_of(stub)), 10)
            assert stub.flushes == 1 and stub.turns[0].finished and not stub.busy
            assert (await turn).outcome == "ok"

    asyncio.run(test())


ORDER = EngineOrder(
    replace(CELL, pool_tokens=30_016, cache_block_tokens=32),
    EngineSetup("vllm", "m", 1000, 2048, 64, command=("x",)),
    "/models/a b",
    True,
    4105,
    2**32 - 1,
)


def test_the_command_of_vllm() -> None:
    command = ADAPTERS["vllm"].command(ORDER, 8000)
    assert command == [
        *("--model", "/models/a b", "--served-model-name", "m", "--host", "127.0.0.1", "--port", "8000"),
        *("--max-model-len", "4105", "--block-size", "32", "--num-gpu-blocks-override", "938"),
        *("--max-num-seqs", "64", "--max-num-batched-tokens", "2048", "--seed", "2147483647"),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details", "--no-enable-log-requests"),
    ]
    off = ADAPTERS["vllm"].command(replace(ORDER, caching=False), 8000)
    assert set(off) - set(command) == {"--no-enable-prefix-caching"}


def test_the_command_of_sglang() -> None:
    command = ADAPTERS["sglang"].command(ORDER, 8000)
    assert command == [
        *("--model-path", "/models/a b", "--served-model-name", "m", "--host", "127.0.0.1", "--port", "8000"),
        *("--context-length", "4105", "--max-total-tokens", "30016", "--page-size", "32"),
        *("--chunked-prefill-size", "2048", "--max-running-requests", "64"),
        *("--schedule-policy", "fcfs", "--radix-eviction-policy", "lru", "--random-seed", "2147483647"),
        *("--enable-metrics", "--enable-cache-report", "--skip-tokenizer-init"),
    ]
    off = ADAPTERS["sglang"].command(replace(ORDER, caching=False), 8000)
    assert set(off) - set(command) == {"--disable-radix-cache"}


def test_the_adapter_openai_starts_nothing() -> None:
    with pytest.raises(EngineError, match="starts no server"):
        ADAPTERS["openai"].command(ORDER, 8000)


@pytest.mark.parametrize("model", ["m", 'm","stream":false,"x":"', "a/b", "é", "\n"])
def test_bodies_are_json_whatever_the_model_is_called(model: str) -> None:
    for adapter in ADAPTERS.values():
        body = json.loads(adapter.body(model, b"1,2,3", 7))
        sampling = body.get("sampling_params", body)
        assert body.get("prompt", body.get("input_ids")) == [1, 2, 3]
        assert sampling["ignore_eos"] is True and sampling["temperature"] == 0 and body["stream"] is True
        assert sampling.get("max_tokens", sampling.get("max_new_tokens")) == 7
        assert body.get("model", model) == model


@pytest.mark.parametrize("vocabulary_tokens", [16, 1000, 151_936, 10_000_000])
def test_prompts_stay_below_the_vocabulary_and_name_their_stream(vocabulary_tokens: int) -> None:
    ids = [int(word) for word in TokenSource(bytes(32), "run", vocabulary_tokens).fresh("a", 500).split(b",")]
    assert len(ids) == 500 and min(ids) >= 0 and max(ids) < vocabulary_tokens
    assert len(set(ids)) > 10
    prompt = Prompt(TokenSource(bytes(32), "run/attempt-1", vocabulary_tokens), "base-0")
    prompt.grow(4)
    first = prompt.text
    prompt.grow(2, (7, 8))
    assert prompt.text.startswith(first + b",7,8,") and len(prompt.text.split(b",")) == 8
    prompt.grow(0, (9,))
    assert prompt.text.endswith(b",9")


HOSTILE = [
    b"",
    b"data: [DONE]\n\n",
    b"data: []\n\ndata: [DONE]\n\n",
    b"data: 1\n\ndata: [DONE]\n\n",
    b"data: " + b"[" * 100_000 + b"\n\ndata: [DONE]\n\n",
    b'data: {"choices":[{"token_ids":[true]}],"usage":{}}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[{"token_ids":[-1]}],"usage":{}}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[{"token_ids":[1e99]}],"usage":{}}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[{"token_ids":null}],"usage":{}}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":"9"}}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":-1}}\n\ndata: [DONE]\n\n',
    b'data: {"choices":7,"usage":[1]}\n\ndata: [DONE]\n\n',
    b'data: {"output_ids":[1],"meta_info":{"prompt_tokens":1,"num_retractions":"x"}}\n\ndata: [DONE]\n\n',
    b'data: {"output_ids":{},"meta_info":{"prompt_tokens":1}}\n\ndata: [DONE]\n\n',
    b'data: {"output_ids":[1],"meta_info":[]}\n\ndata: [DONE]\n\n',
    b"\xff\xfe\x00data: \x1b[31m\n\n",
    b"data: \x1b[31m\n\ndata: [DONE]\n\n",
]


@pytest.mark.parametrize("name", STUBS)
@pytest.mark.parametrize("stream", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_streams_are_refused_in_words(name: str, stream: bytes) -> None:
    with pytest.raises(EngineError) as caught:
        ADAPTERS[name].reply(stream)
    assert caught.value.diagnostics().replace("\n", " ").isprintable()
    assert len(caught.value.diagnostics()) < 500


def test_the_facts_of_an_engine_are_published_without_its_secrets() -> None:
    told = {
        "api_key": "a", "admin_api_key": "b", "hf_token": "c", "ssl_keyfile_password": "d", "system_env": {"HOME": "e"},
        "vllm_env": {"X": 1}, "AUTH": "f", "list": [{"secret": "g", "page_size": 1}, f"--api-key {KEY}"],
        "max_total_num_tokens": 4096,
    }  # fmt: skip
    assert json_of(json.dumps(told).encode(), KEY) == {
        "list": [{"page_size": 1}, "(not shown)"],
        "max_total_num_tokens": 4096,
    }
    assert (
        json_of(b"[NaN]") is None and json_of(b"[" * 90_000) is None and json_of(b'"' + b"a" * 300_000 + b'"') is None
    )


@pytest.mark.parametrize("name", ["sglang", "openai"])
def test_a_whole_run_on_an_engine_at_its_url(name: str, tmp_path: Path) -> None:
    arm = Arm("A", population=2)
    design = design_of(arm, 0.7)
    with in_thread(STUBS[name](StubSettings(**SETTINGS, output_token_s=0.002))) as stub:
        order = order_of(stub)
        plan = plan_of(arm, design)
        outcome = run_on_engine(EngineRun(plan, arm, order.cell, order.setup, "m", "run/attempt-1", tmp_path))
    assert outcome.failure is None
    assert outcome.engine["command"] == [] and outcome.engine["name"] == name and not outcome.engine["simulated"]
    context = RunContext(RunId("A", None, 0), arm, design, order.cell, plan)
    frames = frames_of(outcome.tables)
    assert (frames.turns.outcome == "ok").any()
    found = [check(frames, context) for check in (*PLAN_CHECKS, *ARM_CHECKS, *GATE_CHECKS)]
    found += [check_engine(outcome.engine, context), check_counters(outcome.engine, frames, context)]
    assert [check for check in found if check.outcome is Outcome.REFUTED] == []
    # Neither of them shows all that vLLM shows: that is unproven, no more.
    assert found[-2].outcome is Outcome.UNPROVABLE and "did not say" in found[-2].reason
    assert found[-1].outcome is (Outcome.PROVEN if name == "sglang" else Outcome.UNPROVABLE)


def test_an_engine_s_counters_may_count_the_reuse_of_a_readmission(tmp_path: Path) -> None:
    arm = Arm("A", population=2)
    design = design_of(arm, 0.4)
    with in_thread(Retracting(StubSettings(**SETTINGS, output_token_s=0.002))) as stub:
        order, plan = order_of(stub), plan_of(arm, design)
        outcome = run_on_engine(EngineRun(plan, arm, order.cell, order.setup, "m", "run/attempt-1", tmp_path))
    context = RunContext(RunId("A", None, 0), arm, design, order.cell, plan)
    frames = frames_of(outcome.tables)
    assert check_counters(outcome.engine, frames, context).outcome is Outcome.PROVEN
    never = replace(frames, turns=frames.turns.assign(retractions=0))
    assert check_counters(outcome.engine, never, context).outcome is Outcome.REFUTED


class Talkative(VLLMStub):
    """Says back what it should not."""

    def routes(self) -> list[web.RouteDef]:
        return [*super().routes(), web.get("/server_info", self.server_info)]

    async def server_info(self, request: web.Request) -> web.Response:
        return web.json_response({"api_key": KEY, "headers": dict(request.headers), "seed": 1})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        if len(self.turns) >= 6:
            return web.Response(status=401, text=f"who is {request.headers['Authorization']}?")
        return await super().complete(request)


def test_the_key_is_in_the_requests_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(API_KEY, KEY)
    arm, cell = Arm("A", population=2), CELL
    design = design_of(arm, 20.0)
    with in_thread(Talkative(StubSettings(**SETTINGS, output_token_s=0.002))) as stub:
        run = EngineRun(plan_of(arm, design), arm, cell, setup_of(stub), "m", "run/attempt-1", tmp_path)
        outcome = run_on_engine(run)
    assert outcome.failure is not None and "turns failed one after the other" in str(outcome.failure)
    assert {turn.headers["Authorization"] for turn in stub.turns} == {f"Bearer {KEY}"}
    told = [json.dumps(outcome.engine), *(table.to_pandas().to_csv() for table in outcome.tables.values())]
    told += [str(outcome.failure), outcome.failure.diagnostics(), *capfd.readouterr()]
    told += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert [text for text in told if KEY in text] == []
    assert "status 401: who is Bearer (not shown)?" in told[1]
    assert outcome.engine["resolved"] == {
        "headers": {"Accept": "*/*", **outcome.engine["resolved"]["headers"]},
        "seed": 1,
    }


def test_the_project_s_own_secrets_do_not_reach_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (API_KEY, "TRAP_SIGNING_KEY", "GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("HF_HOME", "/somewhere")
    setup = EngineSetup("vllm", "m", 1000, 256, 64, command=("x",), environment=(("A", "b"),))
    found = engine_environment(setup)
    assert KEY not in found.values()
    assert found["A"] == "b" and found["HF_HOME"] == "/somewhere"


def test_variables_of_a_command() -> None:
    setup = EngineSetup("vllm", "m", 1000, 256, 64, command=("${PROGRAM}", "-m", "x${A}y$A"))
    assert program(setup, {"PROGRAM": "/bin/p", "A": "1"}) == ["/bin/p", "-m", "x1y$A"]
    with pytest.raises(EngineError, match="names a variable that is not set"):
        program(setup, {"PROGRAM": "/bin/p"})
