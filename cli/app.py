"""The command line: parse, call a workflow, render. Installed as `trap` and
`trapkit`; `trap` alone is a shell builtin (`trapkit shell-init`).
"""

from __future__ import annotations

import os
import shutil
import sys

import typer

from cli.commands import (
    audit,
    author,
    doctor,
    gate,
    jobs,
    ledger,
    operator,
    playground,
    policy,
    reproduce,
    share,
    start,
    sweep,
    tables,
    theory,
    watch,
    witness,
    workload,
)

EXIT_INTERRUPTED = 130
EXIT_INTERNAL = 70

app = typer.Typer(
    name="trapkit",
    help="Pre-registered experiments on LLM serving engines, provable to an auditor who trusts nobody.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='In a POSIX shell `trap` is a builtin: type trapkit, or eval "$(trapkit shell-init bash)" once.',
)
MODULES = (
    start, author, jobs, audit, ledger, share, policy, theory, playground, operator, watch, gate, reproduce, sweep,
    tables, workload, witness, doctor,
)  # fmt: skip
for module in MODULES:
    module.add_to(app)


def main() -> None:
    """Run the program; every error ends as words and an exit code."""
    from registry.errors import TrapError

    try:
        app()
    except TrapError as error:
        print(error.diagnostics(), file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted: what was complete is kept; repeat the command to go on", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        if os.environ.get("TRAP_DEBUG"):
            raise
        told = _git_words(error)
        print(told or _words(error), file=sys.stderr)
        sys.exit(TrapError.exit_code if told else EXIT_INTERNAL)


def _git_words(error: Exception) -> str | None:
    """What git said, where git is what failed or is missing."""
    from registry.plain_text import plain, without_credentials

    if shutil.which("git") is None:
        return "error: git is not installed\n  to do: install git 2.34 or newer"
    if not type(error).__module__.startswith("git."):
        return None
    said = without_credentials(str(getattr(error, "stderr", "") or error))
    return f"error: git refused: {plain(said, 600)}\n  to do: put right what git names, then repeat the command"


def _words(error: Exception) -> str:
    from registry.plain_text import plain

    what = plain(str(error).strip() or type(error).__name__, 400)
    return f"error: {type(error).__name__}: {what}\n  to do: TRAP_DEBUG=1 shows where it happened"


if __name__ == "__main__":
    main()
