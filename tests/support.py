"""A small study for tests: short runs, few seeds, the real path all the way."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

WORKLOAD = """
  workload:
    turns: {mean_turns: 15, max_turns: 60}
    first_prompt_tokens: 2000
    output_tokens: 100
    tool_output_tokens: 550
    mean_tool_s: 5
"""

SMALL_CALIBRATION = f"""schema: trap-draft-1
id: all-miss-small
title: A short calibration
question: How fast does the cell prefill when every turn misses?
cell: sglang-300k
design:
  horizon_s: 120
{WORKLOAD}
  rates: []
  seeds: {{values: [0, 1], binding: beacon}}
  arms:
    ALLMISS: {{population: 32, caching: false}}
  windows:
    measured: {{start_s: 20, end_s: 120}}
rule:
  runs:
    ALLMISS:
      missed: run.measured.reuse_fraction == 0.0
  rate: all(ALLMISS.missed)
measures:
  all_miss_prefill_tokens_per_s: {{arm: ALLMISS, window: measured, reading: uncached_prefill_tokens_per_s}}
predictors: []
blindness: none
caveats: []
deviations: []
amendments: []
"""

SMALL_RULE = f"""schema: trap-draft-1
id: small
title: A small paired test
question: Do the arms of a small test do what they say?
cell: sglang-300k
calibration: all-miss-small
design:
  horizon_s: 240
{WORKLOAD}
  rates: [1.35]
  seeds: {{values: [0, 1], binding: beacon}}
  arms:
    BURST:
      burst: {{sessions: 12, start_s: 120, spread_s: 20}}
    NOBURST: {{}}
    CAPPED:
      burst: {{sessions: 12, start_s: 120, spread_s: 20}}
      gate: {{cap: 4, engage_s: 0, release_after_s: null}}
  windows:
    judged: {{start_s: 60, end_s: 240}}
rule:
  runs:
    BURST:
      busy: run.judged.turns_per_s > 0.0
    NOBURST:
      good: run.judged.followup_hit_fraction >= 0.5
    CAPPED:
      held: run.judged.gate_backlog_slope_per_s > -1.0
  rate: count(BURST.busy) >= 1 && all(NOBURST.good) && all(CAPPED.held)
predictors:
  - name: prompt
    kind: stated
    source: a test
    arm: BURST
    rate: 1.35
    window: judged
    reading: mean_prompt_tokens
    value: 9000
    relative_tolerance: 10
blindness: none
caveats: []
deviations: []
amendments: []
"""


@dataclass(frozen=True)
class Result:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything it printed."""
        return self.out + self.err


@lru_cache(maxsize=1)
def _program() -> Any:
    from typer.main import get_command

    from cli.app import app

    return get_command(app)


def command(folder: Path, *arguments: str) -> Result:
    """Run the program in this process, in `folder`, as `trapkit ARGUMENTS`."""
    from cli.app import main

    out, err = io.StringIO(), io.StringIO()
    code, program = 0, _program()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["trapkit", *arguments])
        # The commands are put together once a process, as in a program.
        patch.setattr("typer.main.get_command", lambda _: program)
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Result(code, out.getvalue(), err.getvalue())


def git(folder: Path, *arguments: str) -> str:
    """Run real git; its output."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit_file(root: Path, path: str, text: str | bytes, message: str = "change") -> None:
    """Write a file, commit it, push the branch."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())
    git(root, "add", "-f", path)
    git(root, "commit", "-q", "-m", message)
    git(root, "push", "-q", "origin", "main")


def push_log(rows: Iterable[dict[str, Any]]) -> bytes:
    """A push log of these rows, numbered and chained as a witness would."""
    log, previous = b"", "0" * 64
    for number, row in enumerate(rows, 1):
        line = json.dumps(row | {"id": number, "previous": previous}, sort_keys=True).encode()
        log, previous = log + line + b"\n", hashlib.sha256(line).hexdigest()
    return log


def empty_study(folder: Path, *extra: str) -> Path:
    """A fresh study with the small rule files committed; returns its root."""
    made = command(folder, "init", "study", "--local-remote", *extra)
    assert made.code == 0, made.text
    root = folder / "study"
    (root / "rules" / "small.yaml").write_text(SMALL_RULE)
    commit_file(root, "rules/all-miss-small.yaml", SMALL_CALIBRATION)
    git(root, "add", "rules")
    git(root, "commit", "-q", "-m", "small rule")
    git(root, "push", "-q", "origin", "main")
    return root


def copy_study(source: Path, folder: Path) -> Path:
    """A copy of a finished study with a remote of its own."""
    import shutil

    for name in (source.name, f"{source.name}-remote.git"):
        shutil.copytree(source.with_name(name), folder / name, symlinks=True)
    root = folder / source.name
    git(root, "remote", "set-url", "origin", str(folder / f"{source.name}-remote.git"))
    return root
