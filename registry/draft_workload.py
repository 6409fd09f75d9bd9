"""The workload of a rule file: a turn law with its numbers, or sessions of a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelf.cells import Cell
from modelf.turn_law import TruncatedGeometric
from modelf.workload import Workload
from registry.errors import DraftError
from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts
from registry.strict_yaml import Document, Path
from registry.traces.scripting import Scaling

PLACE: Path = ("design", "workload", "trace")


@dataclass(frozen=True)
class TraceSource:
    """Which sessions of which trace a rule file means.

    `file` as it stands there, `kind` its format where it is named, `sha256` that
    of `registry.traces.digests`; `seed` None: the first `sessions`. `replayed`:
    at its own arrival times.
    """

    file: str
    kind: str | None
    sha256: str
    scaling: Scaling
    sessions: int
    seed: int | None
    replayed: bool = False


@dataclass(frozen=True)
class Frozen:
    """Scripts as a registration freezes them: the file's bytes, what they say,
    and in counts what they were made of.
    """

    data: bytes
    scripts: SessionScripts
    counts: dict[str, int]

    def facts(self) -> dict[str, Any]:
        """What stands in the registration."""
        return {"sha256": self.scripts.sha256, "block_tokens": self.scripts.block_tokens, **self.counts}


ScriptsFor = Callable[[TraceSource, Cell], Frozen]
"""Where the scripts of a rule file's trace come from: the trace, or a registration."""


def no_scripts(source: TraceSource, cell: Cell) -> Frozen:
    """The scripts where nobody can read the trace: DraftError."""
    raise DraftError(
        "this workload is a trace, which is not read here",
        value=source.file,
        remedy="a rule file of a study: trapkit rehearse or register",
    )


def trace_source(workload: dict[str, Any]) -> TraceSource | None:
    """The trace that a workload names, if it does."""
    if "trace" not in workload:
        return None
    trace = workload["trace"]
    scaling = Scaling(
        trace.get("token_scale", 1),
        float(trace.get("time_scale", 1.0)),
        float(trace["max_think_s"]) if "max_think_s" in trace else None,
        trace.get("max_prompt_tokens"),
    )
    sample = trace["sample"]
    return TraceSource(
        trace["file"],
        trace.get("format"),
        trace["sha256"],
        scaling,
        sample["sessions"],
        sample.get("seed"),
        trace.get("arrivals") == "replayed",
    )


def workload_of(source: dict[str, Any], frozen: Frozen | None) -> Workload:
    """The workload of a rule file; `frozen` where it is a trace."""
    if frozen is not None:
        trace = trace_source(source)
        return ScriptedWorkload.following(frozen.scripts, trace is not None and trace.replayed)
    numbers = dict(source)
    return Workload(turns=TruncatedGeometric(**numbers.pop("turns")), **numbers)


def check_replay(document: Document, trace: TraceSource | None, frozen: Frozen | None) -> None:
    """DraftError where sessions shall be replayed that have no arrival times."""
    if not (trace and trace.replayed and frozen) or frozen.scripts.arrival_span_us:
        return
    sessions = len(frozen.scripts.turns)
    raise DraftError(
        "there are no arrival times to replay: one session alone has no rate"
        if sessions == 1
        else "there are no arrival times to replay: all sessions of the trace that are taken arrive at once",
        where=document.where((*PLACE, "arrivals")),
        value=sessions,
        remedy="arrivals: re-timed (the plan draws Poisson arrivals at each rate), or another trace or sample",
    )


def check_trace(document: Document) -> None:
    """DraftError for what a trace cannot be yet."""
    trace = document.value["design"]["workload"].get("trace")
    if trace is None:
        return
    for name, arm in document.value["design"]["arms"].items():
        policy = arm.get("engine", {})
        if policy.get("eviction", "lru") != "lru" or policy.get("pin_s"):
            raise DraftError(
                "with a trace the cache is of blocks that sessions share: none is pinned, and the oldest go first",
                where=document.where(("design", "arms", name, "engine")),
                value=name,
                remedy="eviction: lru, and no pin_s",
            )
