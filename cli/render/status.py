"""Where every registered run stands, as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cli.render.table import table
from cli.workflows.overview import Stands
from cli.workflows.standing import FINISHED, Standing
from registry.plain_text import plain

_LOG_LINES = 5
_HEAD = ["run", "state", "attempt", "job", "node", "about"]


def status_text(found: Sequence[Stands]) -> str:
    """Registrations with the states of their runs; unfinished ones by name,
    and the last log lines of those that failed.
    """
    return "\n\n".join(map(_text, found)) or "nothing is registered yet: trapkit register rules/e2.yaml"


def _text(stands: Stands) -> str:
    if stands.problem:
        return f"{stands.name}: {stands.problem}"
    pushed = f"pushed {stands.pushed_at}" if stands.pushed_at else "not seen pushed by a witness"
    counts = Counter(run.state for run in stands.runs)
    lines = [
        f"{stands.name}  {stands.title}",
        f"  {pushed}; {stands.drawn}; " + ", ".join(f"{n} {state}" for state, n in sorted(counts.items())),
    ]
    rows = [_row(run) for run in stands.runs if run.state != FINISHED or run.words]
    if rows:
        lines.append(table([_HEAD, *rows]))
        lines += [f"  {run.run.path}: {line}" for run in stands.runs for line in run.tail.splitlines()[-_LOG_LINES:]]
        on_slurm = " --executor slurm" if any(run.job_id for run in stands.runs) else ""
        lines.append(f"  next: trapkit run {stands.id}{on_slurm}")
    return "\n".join(lines)


def _row(run: Standing) -> list[str]:
    node = (run.job.node if run.job else None) or "-"
    attempt = "-" if run.attempt is None else str(run.attempt)
    return [run.run.path, run.state, attempt, run.job_id or "-", node, plain(run.words, 200) or "-"]


def status_json(found: Sequence[Stands]) -> str:
    """The same as JSON: a list of registrations, each with its runs."""
    return json.dumps([_json(stands) for stands in found], indent=1, sort_keys=True)


def _json(stands: Stands) -> dict[str, Any]:
    value = {key: getattr(stands, key) for key in ("name", "id", "title", "pushed_at", "drawn", "problem")}
    return {**value, "runs": [_run(run) for run in stands.runs]}


def _run(run: Standing) -> dict[str, Any]:
    return {
        **asdict(run.run),
        "state": run.state,
        "about": run.words,
        "attempt": run.attempt,
        "job": run.job_id,
        "scheduler": asdict(run.job) if run.job else None,
        "log": run.tail.splitlines(),
    }
