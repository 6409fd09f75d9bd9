"""What a trace holds, as text and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from cli.render.table import table
from cli.workflows.trace_table import TableWritten
from registry.traces.description import Description, Moments
from registry.traces.session_table import ODDITIES, Malformed


def description_json(found: Description, kind: str) -> str:
    """The same value always gives the same bytes."""
    value = {
        "format": kind,
        "sessions": found.sessions,
        "sub_agent_sessions": found.sub_agents,
        "turns": found.turns,
        "prompt_tokens": found.prompt_tokens,
        "output_tokens": found.output_tokens,
        "infinite_cache_hit_fraction": found.infinite_cache_hit_fraction,
        "block_tokens": found.block_tokens,
        "malformed": found.malformed,
        "problems": [asdict(problem) for problem in found.problems],
        "zero_outputs": found.zero_outputs,
        "oddities": dict(sorted(found.oddities.items())),
        "prompt": _moments(found.prompts),
        "output": _moments(found.outputs),
        "wait_s": {**_moments(found.waits_s), "measured": found.measured_waits},
        "last_arrival_s": found.last_arrival_s,
    }
    return json.dumps(value, indent=1, sort_keys=True)


def _moments(found: Moments) -> dict[str, float | int | None]:
    return {"count": found.count, "mean": found.mean, "max": found.largest if found.count else None}


def description_text(found: Description, kind: str) -> str:
    """A few lines, then what is odd, then what could not be read."""
    fraction = found.infinite_cache_hit_fraction
    agents = f", {found.sub_agents:,} of them sub-agents'" if found.sub_agents else ""
    rows = [
        ["format", f"{kind}, blocks of {found.block_tokens} tokens" if found.block_tokens else kind],
        [
            "sessions",
            f"{found.sessions:,}{agents}",
        ],
        ["turns", f"{found.turns:,}"],
        ["prompt tokens", _tokens(found.prompt_tokens, found.prompts)],
        ["output tokens", _tokens(found.output_tokens, found.outputs)],
        ["reused by an infinite cache", "undefined" if fraction is None else f"{fraction:.4f} of the prompt tokens"],
        ["tool or think time", _waits(found)],
        ["last arrival", f"{found.last_arrival_s:,.0f} s after the first"],
        ["malformed", f"{found.malformed:,}"],
    ]
    lines = [table(rows)]
    lines += [f"  {count:,} x {ODDITIES[odd]}" for odd, count in sorted(found.oddities.items()) if count]
    if found.zero_outputs:
        lines.append(f"  {found.zero_outputs:,} x a turn without output: it is sent, and nothing comes back")
    return "\n".join([*lines, *_problems(found.problems, found.malformed)])


def table_text(written: TableWritten, name: str) -> str:
    """What stands in the table, then what could not be read."""
    made = f"{written.turns:,} turns of {written.sessions:,} sessions: {name}" if written.turns else "no turn was read"
    told = [f"malformed: {written.malformed:,}"] if written.malformed else []
    return "\n".join([made, *told, *_problems(written.problems, written.malformed)])


def _problems(shown: list[Malformed], malformed: int) -> list[str]:
    lines = [f"  {problem.where}: {problem.why}" for problem in shown]
    return [*lines, f"  and {malformed - len(shown):,} more"] if malformed > len(shown) else lines


def _tokens(total: int, moments: Moments) -> str:
    return f"{total:,}" + (f"; {moments.mean:,.0f} a turn, at most {moments.largest:,.0f}" if moments.count else "")


def _waits(found: Description) -> str:
    waits = found.waits_s
    if waits.mean is None:
        return "no session has a second turn"
    return (
        f"{waits.mean:,.1f} s on average, at most {waits.largest:,.0f} s; "
        f"{found.measured_waits:,} of {waits.count:,} are the trace's own, the others hold the answers' time"
    )
