"""Where every registered run stands; nothing is verified."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from cli.workflows.standing import Standing
from cli.workflows.standings import standings
from registry.attempt_log import AttemptRecord
from registry.design import RunId
from registry.errors import RegistrationError
from registry.plain_text import plain
from registry.registration import Registration
from registry.study import Study
from registry.witness.policy_file import load_policy
from verifier.evidence import TagEvidence, gather


@dataclass(frozen=True)
class Stands:
    """One registration: when it was pushed, how it is drawn, its runs' states.

    `problem` is why it cannot be read; it has no runs then.
    """

    name: str
    id: str
    title: str = ""
    pushed_at: str | None = None
    drawn: str = ""
    runs: tuple[Standing, ...] = ()
    problem: str | None = None


def overview(study: Study, identity: str | None = None) -> list[Stands]:
    """Every registration of a study, or those of one id; RegistrationError
    where there is none of that id.
    """
    evidence = gather(study.root, load_policy(study=study.root))
    known = sorted({tag.id for tag in evidence.tags})
    if identity is not None and identity not in known:
        raise RegistrationError(
            "not registered", value=identity, remedy=f"registered here: {', '.join(known) or 'none yet'}"
        )
    found = []
    for tag in (tag for tag in evidence.tags if identity in (None, tag.id)):
        if tag.registration is None:
            found.append(Stands(tag.name, tag.id, problem=plain(tag.problem or "unreadable")))
            continue
        records: dict[RunId, list[AttemptRecord]] = defaultdict(list)
        for record in evidence.log.of(tag.id, tag.version):
            records[record.run].append(record)
        runs = tuple(standings(study, tag.registration, records))
        title = plain(tag.registration.draft.title)
        pushed_at = tag.push.time if tag.push else None
        found.append(Stands(tag.name, tag.id, title, pushed_at, _drawn(tag, tag.registration), runs))
    return found


def _drawn(tag: TagEvidence, registration: Registration) -> str:
    if registration.plan_source:
        return f"plans of {registration.plan_source.tag}"
    if not registration.waits_for_beacon:
        return "literal seeds"
    return "drawn" if tag.draw.value else "not drawn"
