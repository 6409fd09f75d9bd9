"""What a schema cannot say of an arm's gate and engine, and of the pool's size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modelf.cells import Cell
from registry.design import Arm, Design, EnginePolicy, cell_under
from registry.errors import DraftError, TrapError
from registry.scripted_workload import unit_tokens_of
from registry.strict_yaml import Document, Path

Finding = tuple[Path, str, object, str]


def policy_problems(document: Document, design: Design, cells: Mapping[str, Cell]) -> list[TrapError]:
    """Every finding about what arms change at the client and in the engine."""
    real = document.value.get("runs_on") == "engine"
    found = [finding for arm in design.arms for finding in (*_gate(arm), *_engine(arm, real))]
    if cell := cells.get(document.value["cell"]):
        found += [*_pool(design, cell), *(_blocks(design, cell) if real else ())]
    return [
        DraftError(what, where=document.where(("design", *path)), value=value, remedy=remedy)
        for path, what, value, remedy in found
    ]


def _gate(arm: Arm) -> Iterator[Finding]:
    gate = arm.gate
    if gate is None:
        return
    place: Path = ("arms", arm.name, "gate")
    if (gate.cap is None) == (gate.pool_share is None):
        yield place, "a gate has either cap or pool_share", arm.name, "give exactly one of them"
    adaptation = gate.adaptation
    if adaptation and gate.cap is None:
        yield (*place, "adaptation"), "only a cap on sessions adapts", arm.name, "give cap, or leave adaptation out"
    elif adaptation and adaptation.least_cap > (gate.cap or 0):
        yield (*place, "adaptation", "least_cap"), "above the first cap", adaptation.least_cap, f"at most {gate.cap}"


def _engine(arm: Arm, real: bool) -> Iterator[Finding]:
    engine = arm.engine
    place: Path = ("arms", arm.name, "engine")
    if real and engine != EnginePolicy():
        yield place, "no real engine takes this policy", arm.name, "leave it out, or runs_on: simulator"
    if engine.pin_s and engine.eviction != "lru":
        yield (*place, "pin_s"), "pins go with eviction lru", engine.eviction, "leave one of them out"
    if not arm.caching and (engine.pin_s or engine.eviction != "lru"):
        yield place, "there is no cache to evict from or to pin in", arm.name, "leave it out, or caching: false"


def _blocks(design: Design, cell: Cell) -> Iterator[Finding]:
    block = cell.cache_block_tokens
    for arm in design.arms:
        if arm.pool_tokens and arm.pool_tokens % block:
            place: Path = ("arms", arm.name, "pool_tokens")
            yield place, "a real engine's pool is whole blocks", arm.pool_tokens, f"a multiple of {block}"


def _pool(design: Design, cell: Cell) -> Iterator[Finding]:
    for arm in design.arms:
        longest, capped = design.workload.longest_turn_tokens(arm.step_cap), cell_under(arm, cell)
        unit = unit_tokens_of(design.workload, cell)
        if longest > capped.pool_tokens // unit * unit:
            yield (
                ("workload",),
                f"a pool of {capped.pool_tokens} tokens ({arm.name}) is too small for one turn of this workload",
                longest,
                "a larger pool, fewer turns or shorter prompts",
            )
            return
