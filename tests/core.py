"""The simulator's core, interpreted, beside the compiled one in one process."""

from __future__ import annotations

import importlib
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

import numba

_CORE = ("runners.simulated", "runners.gate_rules")


@lru_cache(maxsize=1)
def interpreted() -> dict[str, ModuleType]:
    """The modules of the core by name, imported with compilation off."""
    config: Any = numba.core.config
    before, disabled = _taken_out(), config.DISABLE_JIT
    config.DISABLE_JIT = 1
    try:
        importlib.import_module("runners.simulated.run")
        modules = _taken_out()
    finally:
        config.DISABLE_JIT = disabled
        _put_back(before)
    return {name.rpartition(".")[2]: module for name, module in modules.items()}


def _taken_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.startswith(_CORE)]
    for name in _CORE:
        vars(importlib.import_module("runners")).pop(name.rpartition(".")[2], None)
    return {name: sys.modules.pop(name) for name in names}


def _put_back(modules: dict[str, ModuleType]) -> None:
    sys.modules.update(modules)
    for name in _CORE:
        if name in modules:
            setattr(importlib.import_module("runners"), name.rpartition(".")[2], modules[name])
