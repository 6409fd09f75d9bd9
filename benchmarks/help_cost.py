"""What `trapkit --help` costs beside a bare `python -c "import typer"`.

Both in one run, alternating, best of N: `python benchmarks/help_cost.py`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15
LIMIT = 3.0


def seconds(*command: str | Path) -> float:
    """Wall seconds of one command."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print both costs and their ratio."""
    program = Path(sys.executable).with_name("trapkit")
    rounds = [(seconds(program, "--help"), seconds(sys.executable, "-c", "import typer")) for _ in range(ROUNDS)]
    ours, bare = (min(column) for column in zip(*rounds, strict=True))
    print(f"trapkit --help {ours * 1000:.0f} ms, import typer {bare * 1000:.0f} ms")
    print(f"ratio {ours / bare:.2f}, at most {LIMIT:g} is wanted")


if __name__ == "__main__":
    main()
