"""What the tests of sweeps share."""

from __future__ import annotations

from pathlib import Path

AXES = {"seed": "0:1", "rate": "1.35,1.2", "burst_sessions": "0,12", "cap": "none,4"}
RUNS = 16


class Quiet:
    def say(self, text: str) -> None:
        pass

    def step(self, title: str, done: int, total: int) -> None:
        pass


QUIET = Quiet()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
