"""The records of a scripted run: its scripts' turns and ids, and an empty block cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelf.cells import Cell
from registry.design import Arm
from registry.errors import CapExceeded, TrapError
from registry.plan import Plan
from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts
from runners.simulated.blocks import NOBODY
from runners.simulated.state import CONTEXT, table

MOST_BLOCKS = 2**23
"""Each takes a row of the cache's table, whether it is ever used or not."""


def scripts_of(plan: Plan) -> SessionScripts | None:
    """The scripts that a plan's sessions follow, if they do."""
    return plan.workload.scripts if isinstance(plan.workload, ScriptedWorkload) else None


def engine_values(scripts: SessionScripts, pool_tokens: int) -> dict[str, int]:
    """What a scripted run changes of the engine's record."""
    block = scripts.block_tokens
    return {
        "block_tokens": block,
        "unit_tokens": block,
        "size_units": pool_tokens // block,
        "sharing": 1,
        "shared_blocks": scripts.shared_blocks,
        "bucket_mask": _rows(pool_tokens // block) - 1,
        **dict.fromkeys(("free_block", "block_oldest", "block_newest"), NOBODY),
    }


def block_table(scripts: SessionScripts, pool_tokens: int) -> Any:
    """The empty cache of a run."""
    nobody = dict.fromkeys(("older", "newer", "following", "chain"), NOBODY)
    return table(CONTEXT, _rows(pool_tokens // scripts.block_tokens), **nobody)


def _rows(blocks: int) -> int:
    """A power of two above twice the blocks, so that chains are short."""
    return 1 << (2 * blocks).bit_length()


def script_columns(scripts: SessionScripts, times: int) -> dict[str, Any]:
    """The scripts' turns as columns of slots; their ids follow so many `times`."""
    return {
        "prompt_tokens": scripts.prompt_tokens,
        "output_tokens": scripts.output_tokens,
        "reusable_tokens": scripts.reusable_tokens,
        "first_block": scripts.first_block[:-1] + times,
        "blocks": np.diff(scripts.first_block),
    }


def check_arm(plan: Plan, arm: Arm, cell: Cell) -> None:
    """TrapError where an arm asks for what a shared cache of blocks does not do,
    CapExceeded where the pool has too many blocks.
    """
    scripts = scripts_of(plan)
    if scripts and cell.pool_tokens // scripts.block_tokens > MOST_BLOCKS:
        raise CapExceeded(
            "the pool has too many blocks to simulate",
            where=cell.name,
            value=cell.pool_tokens // scripts.block_tokens,
            remedy=f"at most {MOST_BLOCKS:,} blocks of {scripts.block_tokens} tokens",
        )
    if scripts and (arm.engine.eviction != "lru" or arm.engine.pin_s):
        raise TrapError(
            "contexts of a scripted workload are blocks that sessions share: none is pinned, and the oldest go first",
            where=arm.name,
            value=f"eviction {arm.engine.eviction}, pin_s {arm.engine.pin_s:g}",
            remedy="eviction: lru, and no pin_s",
        )
