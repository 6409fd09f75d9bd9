"""A study whose cell runs on a stub of an engine: a program of its own, as real ones are."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from tests.support import command, commit_file, git

PROJECT = Path(__file__).parents[2]
STUDY = Path("study.yaml")

CELL = """schema: trap-cell-1
name: stub
engine: vllm
engine_version: 0.32.0
model: a stub's
gpu: none
pool_tokens: 4096
cache_block_tokens: 4
constants:
  - {name: pool_tokens, origin: measured, note: as its command line says}
scheduler: mixed
cache: block-lru
"""

WORKLOAD = """
  workload:
    turns: {mean_turns: 5, max_turns: 9}
    first_prompt_tokens: 21
    output_tokens: 3
    tool_output_tokens: 9
    mean_tool_s: 0.02
"""

CALIBRATION = f"""schema: trap-draft-1
id: all-miss-stub
title: The stub when every turn misses
question: How fast does it prefill?
cell: stub
runs_on: engine
design:
  horizon_s: 0.6
{WORKLOAD}
  rates: []
  seeds: {{values: [0, 1, 2], binding: beacon}}
  arms:
    ALLMISS: {{population: 2, caching: false}}
  windows:
    measured: {{start_s: 0.1, end_s: 0.6}}
rule:
  runs:
    ALLMISS:
      missed: run.measured.reuse_fraction == 0.0
  rate: all(ALLMISS.missed)
measures:
  all_miss_prefill_tokens_per_s: {{arm: ALLMISS, window: measured, reading: uncached_prefill_tokens_per_s}}
predictors: []
exclusions: [engine_never_ready]
max_attempts: 3
blindness: none
caveats: []
deviations: []
amendments: []
"""

RULE = f"""schema: trap-draft-1
id: tested
title: A small test on the stub
question: Does a cap hold?
cell: stub
runs_on: engine
calibration: all-miss-stub
design:
  horizon_s: 0.9
{WORKLOAD}
  rates: [1.0]
  seeds: {{values: [0], binding: beacon}}
  arms:
    CAPPED:
      burst: {{sessions: 6, start_s: 0.4, spread_s: 0.1}}
      gate: {{cap: 3, engage_s: 0, release_after_s: null}}
  windows:
    judged: {{start_s: 0.2, end_s: 0.9}}
rule:
  runs:
    CAPPED:
      engaged: run.judged.engaged_s == 0.0 && run.judged.turns_per_s > 0.0
  rate: all(CAPPED.engaged)
predictors: []
exclusions: [engine_never_ready]
max_attempts: 3
blindness: none
caveats: []
deviations: []
amendments: []
"""


def fork_anew() -> None:
    """The next fork server is started with what engine runs need imported, and this environment."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def literal(text: str) -> str:
    """A rule file whose plans no round is waited for, and whose runs are one."""
    return text.replace("values: [0, 1, 2], binding: beacon", "values: [0], binding: literal")


def engine_section(
    arguments: Iterable[str] = (), adapter: str = "vllm", program: Iterable[str] | None = None, **more: Any
) -> str:
    """The section engines of study.yaml: JSON is YAML."""
    setup = {
        "adapter": adapter,
        "model": "models/stub",
        "vocabulary_tokens": 1000,
        "chunk_tokens": 256,
        "batch_requests": 64,
        "command": list(program or (sys.executable, "-m", f"tests.engines.{adapter}_stub")),
        "arguments": ["--stub-output-token-s", "0.002", *arguments],
        "environment": {"PYTHONPATH": str(PROJECT), "VLLM_SERVER_DEV_MODE": "1"},
        "ready_timeout_s": 30,
        "hang_timeout_s": 30,
    }
    return "engines: " + json.dumps({"stub": {**setup, **more}}) + "\n"


def engine_study(folder: Path, section: str, *rules: str) -> Path:
    """A study with the stub's cell and these rule files committed; returns its root."""
    made = command(folder, "init", "study", "--local-remote")
    assert made.code == 0, made.text
    root = folder / "study"
    (root / "cells").mkdir(exist_ok=True)
    (root / "cells/stub.yaml").write_text(CELL)
    (root / "models/stub").mkdir(parents=True)
    (root / "models/stub/config.json").write_text('{"architectures": ["Stub"]}\n')
    for text in rules:
        name = text.partition("\nid: ")[2].partition("\n")[0]
        (root / f"rules/{name}.yaml").write_text(text)
    with (root / STUDY).open("a") as file:
        file.write(section)
    git(root, "add", "-f", "cells", "models", "rules", "study.yaml")
    git(root, "commit", "-q", "-m", "the stub")
    git(root, "push", "-q", "origin", "main")
    return root


def set_engine(root: Path, section: str) -> None:
    """Another engine from now on."""
    kept = (root / STUDY).read_text().partition("engines: ")[0]
    commit_file(root, "study.yaml", kept + section)


def register(root: Path, name: str) -> None:
    done = command(root, "register", f"rules/{name}.yaml")
    assert done.code == 0, done.text


def results(root: Path) -> list[dict[str, Any]]:
    """The pushed result records, in order."""
    files = git(root.with_name("study-remote.git"), "ls-tree", "--name-only", "attempts", "attempts/").splitlines()
    lines = [line for name in files for line in git(root, "show", f"origin/attempts:{name}").splitlines()]
    records = [json.loads(line) for line in lines]
    return [record for record in records if record["event"] != "start"]
