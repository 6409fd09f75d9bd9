"""Where every registered run stands, as text; nothing is verified."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cli.render.table import table
from registry.errors import RegistrationError
from registry.plain_text import plain
from verifier.attempts import deciding
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.run_report import state_without_result


def status_text(evidence: StudyEvidence, runs: Path, identity: str | None) -> str:
    """Registrations with the states of their runs; missing ones by name."""
    known = sorted({tag.id for tag in evidence.tags})
    if identity is not None and identity not in known:
        raise RegistrationError(
            "not registered", value=identity, remedy=f"registered here: {', '.join(known) or 'none yet'}"
        )
    tags = [tag for tag in evidence.tags if identity in (None, tag.id)]
    if not tags:
        return "nothing is registered yet: trapkit register rules/e2.yaml"
    return "\n\n".join(_tag_text(evidence, tag, runs) for tag in tags)


def _tag_text(evidence: StudyEvidence, tag: TagEvidence, runs: Path) -> str:
    if tag.registration is None:
        return f"{tag.name}: {plain(tag.problem or 'unreadable')}"
    registration = tag.registration
    pushed = f"pushed {tag.push.time}" if tag.push else "not seen pushed by a witness"
    if registration.plan_source:
        drawn = f"plans of {registration.plan_source.tag}"
    elif not registration.waits_for_beacon:
        drawn = "literal seeds"
    else:
        drawn = "drawn" if tag.draw.value else "not drawn"
    records = evidence.log.of(tag.id, tag.version)
    states = {}
    for run in registration.draft.design.run_ids():
        own = [r for r in records if r.run == run]
        chosen = deciding(own)
        state = "complete" if chosen else state_without_result(own, runs, registration, run)
        states[run] = (state, chosen.attempt if chosen else len({r.attempt for r in own}))
    counts = Counter(state for state, _ in states.values())
    lines = [
        f"{tag.name}  {plain(registration.draft.title)}",
        f"  {pushed}; {drawn}; " + ", ".join(f"{n} {state}" for state, n in sorted(counts.items())),
    ]
    open_runs = [["run", "state", "attempts"]]
    open_runs += [[run.path, state, str(n)] for run, (state, n) in states.items() if state != "complete"]
    if len(open_runs) > 1:
        lines.append(table(open_runs))
        lines.append(f"  next: trapkit run {tag.id}")
    return "\n".join(lines)
