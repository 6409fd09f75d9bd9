"""The load generator beside a peer, NVIDIA's AIPerf: how many turns a second, how late.

`python benchmarks/generator.py [--aiperf-python PATH] [--rates 50 200 1000] [--seconds 20] [--json]`

Both send the same load to the same null engine (null_server.py): sessions that
live all the time, each a turn every sessions / rate seconds, at phases drawn
once; prompts of 10,000 token ids (57 kB), 10 output tokens, streamed. The null
engine has one core for itself, the generator with all its processes another.
Sessions arrive during a warm-up; then come `--seconds` that count.

offered     turns a second that the sessions would send were all answered at once
due         turns a second that became due: fewer where sessions slip
sustained   turns a second whose first byte reached the engine in those seconds
missing     turns that were due then and had not come when the run ended
lag         first byte at the engine, less when the turn was due. It holds the
            generator's delay, the kernel's, and the engine's own queue: one turn
            costs the engine about 0.2 ms, `engine busy` says how much of its core
behind      our generator alone: what it notes itself, request sent less due
cpu_ms      our generator alone: CPU time a turn; 1000 over it is what a core can do
others      how much of the generator's core other programs took, meanwhile: with
            more than a few per cent the lags are theirs

What the peer can show: AIPerf replays a trace with a time for each turn
(`--fixed-schedule`), so its plan is known but for its zero. Its earliest turn is
taken as on time, which flatters it by that turn's lag. What it cannot: it is
made for many cores (several processes), and here has one; its turns are texts
that it read before, where ours are made as sessions arrive and grow by the
engine's answers (so ours arrive at most 50 a second, its own within one round);
it sends all turns of its trace, however late, so none is ever missing, where
ours ends at its horizon; and our sessions slip when an answer is late, so that
fewer turns become due, where its trace stands fixed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from generator_measures import HERE, Load, NullServer, figures, null_server, percentiles_ms, run_on

from cli.render.table import table

PROMPT_TOKENS, OUTPUT_TOKENS, VOCABULARY_TOKENS = 10_000, 10, 32_000
ARRIVALS_PER_S = 50.0
"""Of sessions, for our generator: each one's first prompt is made then, 10,000 ids of it."""


def run_trapkit(load: Load, server: NullServer, core: int, folder: Path) -> dict[str, Any]:
    """Our generator, in a process of its own (generator_trapkit.py)."""
    asked = {
        "url": server.url,
        "gap_s": load.gap_s,
        "warm_s": load.warm_s,
        "phases_s": load.phases_s,
        "horizon_s": load.horizon_s,
        "prompt_tokens": PROMPT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
        "vocabulary_tokens": VOCABULARY_TOKENS,
    }
    (folder / "asked.json").write_text(json.dumps(asked))
    program = [
        sys.executable,
        str(HERE / "generator_trapkit.py"),
        str(folder / "asked.json"),
        str(folder / "sent.json"),
    ]
    others = run_on(core, program, dict(os.environ))
    sent = json.loads((folder / "sent.json").read_text())
    due_s = {(session, turn): planned_s for session, turn, planned_s, _ in sent["turns"]}
    behind_s = [submit_s - planned_s for *_, planned_s, submit_s in sent["turns"]
                if submit_s is not None and load.warm_s <= planned_s < load.horizon_s]  # fmt: skip
    row = figures(load, due_s, server.receipts(), sent["zero_s"])
    return {
        **row,
        **percentiles_ms("behind", behind_s),
        "errors": sent["errors"],
        "others": others,
        "cpu_ms": sent["cpu_ms"],
    }


def write_trace(load: Load, path: Path) -> dict[tuple[str, int], float]:
    """The same turns as a Mooncake trace of whole requests; returns when each is due.

    The ids are one text, not a list: the bytes on the wire are the same, and the
    peer need not keep 10,000 numbers a turn.
    """
    ids = ",".join(map(str, np.random.default_rng(1).integers(0, VOCABULARY_TOKENS, PROMPT_TOKENS - 2).tolist()))
    due_s: dict[tuple[str, int], float] = {}
    with path.open("w") as file:
        for session, phase_s in enumerate(load.phases_s):
            turns = int(np.ceil((load.horizon_s - phase_s) / load.gap_s))
            for turn in range(1, turns + 1):
                time_s = phase_s + (turn - 1) * load.gap_s
                # The session header holds what AIPerf makes of the session's name.
                due_s[f"fixed-schedule-{session}", turn] = time_s
                payload = {"model": "m", "prompt": f"{session},{turn},{ids}", "max_tokens": OUTPUT_TOKENS,
                           "ignore_eos": True, "temperature": 0, "return_token_ids": True, "stream": True,
                           "stream_options": {"include_usage": True}}  # fmt: skip
                row = {"session_id": str(session), "timestamp": time_s * 1e3, "payload": payload}
                file.write(json.dumps(row, separators=(",", ":")) + "\n")
    return due_s


TOKENIZER = """
import json, sys
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers
folder = Path(sys.argv[1])
tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "x": 1}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save(str(folder / "tokenizer.json"))
kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
(folder / "tokenizer_config.json").write_text(json.dumps(kind))
"""
"""AIPerf loads a tokenizer even where it counts nothing; its built-in one is downloaded, this one made."""


def run_aiperf(load: Load, server: NullServer, core: int, folder: Path, python: Path) -> dict[str, Any]:
    """The peer: AIPerf of the environment of `python`."""
    due_s = write_trace(load, folder / "trace.jsonl")
    (folder / "tokenizer").mkdir()
    subprocess.run([python, "-c", TOKENIZER, folder / "tokenizer"], check=True)
    command = [python.with_name("aiperf"), "profile", "--model", "m",
               "--url", server.url, "--endpoint-type", "completions", "--streaming",
               "--input-file", str(folder / "trace.jsonl"), "--custom-dataset-type", "mooncake_trace",
               "--fixed-schedule", "--session-header", "X-Session-Id", "--tokenizer", str(folder / "tokenizer"),
               "--use-server-token-count", "--ui", "none", "--artifact-dir", str(folder / "aiperf"),
               "--no-gpu-telemetry", "--no-server-metrics", "--workers-max", "1",
               "--record-processors", "1"]  # fmt: skip
    # It looks for hubs and accounts where these let it.
    environment = {k: v for k, v in os.environ.items() if k not in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")}
    others = run_on(core, command, environment)
    receipts = server.receipts()
    zero_s = min(r.first_byte_s - due_s[r.session, r.turn] for r in receipts)
    return {**figures(load, due_s, receipts, zero_s), "errors": len(due_s) - len(receipts), "others": others}


COLUMNS = ("offered_per_s", "due_per_s", "sustained_per_s", "missing", "errors", "lag_p50_ms", "lag_p99_ms",
           "lag_most_ms", "behind_p50_ms", "behind_p99_ms", "cpu_ms", "engine_busy", "others")  # fmt: skip


def main() -> None:
    """Print a row for each rate and generator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aiperf-python", type=Path, help="the Python of an environment with aiperf in it")
    parser.add_argument("--rates", type=float, nargs="+", default=[50.0, 200.0, 1000.0])
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    engine_core, client_core = sorted(os.sched_getaffinity(0))[:2]
    results: list[dict[str, Any]] = []
    for rate in asked.rates:
        for name in ("trapkit", "aiperf") if asked.aiperf_python else ("trapkit",):
            with tempfile.TemporaryDirectory() as text, null_server(engine_core) as server:
                folder = Path(text)
                load = Load(rate, asked.sessions, asked.seconds, ARRIVALS_PER_S if name == "trapkit" else math.inf)
                if name == "trapkit":
                    row = run_trapkit(load, server, client_core, folder)
                else:
                    row = run_aiperf(load, server, client_core, folder, asked.aiperf_python)
                busy = server.cpu_s / load.horizon_s
            results.append({"generator": name, **row, "engine_busy": busy})
    if asked.json:
        print(json.dumps(results, indent=2))
        return
    rows = [(r["generator"], *(f"{r[c]:.4g}" if c in r else "-" for c in COLUMNS)) for r in results]
    print(table([("generator", *COLUMNS), *rows]))


if __name__ == "__main__":
    main()
