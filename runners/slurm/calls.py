"""What a job executes: a function named by its module, with plain arguments.

submitit pickles a call when it is submitted and loads it on the node. Names and
plain values are all that is in the pickle, so what runs there is the installed
program's code.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib import import_module

from registry.errors import StudyError, TrapError
from runners.asked_to_end import heard

_FUNCTION = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*:[a-z_][a-z0-9_]*")


@dataclass(frozen=True)
class Call:
    """`function` is `package.module:name`."""

    function: str
    arguments: tuple[str | int, ...]


def invoke(call: Call) -> None:
    """Make the call here, as a job does: its own files are its result, and what
    fails ends the process with words on standard error.

    Signals that submitit would answer by requeueing end the call.
    """
    try:
        with heard():
            _make(call)
    except TrapError as error:
        print(error.diagnostics(), file=sys.stderr)
        sys.exit(error.exit_code)


def _make(call: Call) -> None:
    if not _FUNCTION.fullmatch(call.function):
        raise StudyError("not a function of this program", value=call.function)
    module, _, name = call.function.partition(":")
    getattr(import_module(module), name)(*call.arguments)
