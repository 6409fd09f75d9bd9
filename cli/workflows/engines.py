"""The real engine that a registration freezes, from study.yaml."""

from __future__ import annotations

from dataclasses import replace

from registry.draft import ENGINE, Draft
from registry.engine_setup import EngineSetup
from registry.errors import RegistrationError
from registry.model_folder import model_of, model_sha256
from registry.study import Study


def engine_of(study: Study, draft: Draft) -> EngineSetup | None:
    """The cell's engine with its model's digest; None for a simulated draft.

    RegistrationError where study.yaml does not say how to start it.
    """
    if draft.runs_on != ENGINE:
        return None
    setup = study.settings.engines.get(draft.cell.name)
    if setup is None:
        raise RegistrationError(
            f"study.yaml does not say how the engine of cell {draft.cell.name} is started",
            where=f"{draft.id}, runs_on: {ENGINE}",
            remedy=f"add engines.{draft.cell.name} to study.yaml, see docs/real-engines.md",
        )
    folder = model_of(study.root, setup.model)
    return replace(setup, model_sha256=model_sha256(folder) if folder else None)
