"""README's lines, typed into real interactive shells on terminals of their own."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
LIMIT_S = 600
START = {"bash": ["bash", "--noprofile", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}
_SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def readme_lines() -> list[str]:
    """Every line of README's runnable blocks but the two make targets."""
    lines = "".join(_SH.findall((ROOT / "README.md").read_text("utf-8"))).splitlines()
    return [line for line in lines if not line.startswith("make ")]


def typed(shell: str, folder: Path, home: Path, lines: list[str]) -> str:
    """Type lines into an interactive shell; what its terminal shows. Each
    line's exit code shows as `<exit N>`.
    """
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TERM": "dumb",
        "COLUMNS": "250",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"],
    }
    own_terminal = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", own_terminal, *START[shell]], cwd=folder, env=environment, stdin=slave
    ) as process:
        os.close(slave)
        script = "".join(f"{line}\nprintf '<exit %s>\\n' $?\n" for line in lines)
        os.write(master, f"{script}exit 0\n".encode())
        shown = everything(master)
        os.close(master)
        assert process.wait(timeout=10) == 0, shown
    return shown


def everything(terminal: int) -> str:
    """What a terminal shows until its shell leaves."""
    until, shown = time.monotonic() + LIMIT_S, b""
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    return shown.decode("utf-8", "replace").replace("\r", "")


def exits(shown: str) -> list[int]:
    """The exit codes of the typed lines; their echo has `%s` in that place."""
    return [int(code) for code in re.findall(r"^.*<exit (\d+)>$", shown, re.MULTILINE)]


def test_readme_runs_in_bash_and_its_study_is_verified_in_zsh(tmp_path: Path) -> None:
    # One test, so that parallel workers do not register e2 twice.
    clone = tmp_path / "clone"
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "activate").write_text(f'PATH="{PROGRAMS}:$PATH"\n')
    lines = readme_lines()
    shown = typed("bash", clone, tmp_path, lines)
    assert exits(shown) == [0] * (len(lines) - 1) + [3], shown
    assert re.search(r"^3 proofs, 0 failures\n.*printf.*\n<exit 3>$", shown, re.MULTILINE), shown
    assert (tmp_path / "my-study" / "registrations" / "e2.v1.json").is_file()
    if shutil.which("zsh"):
        _verify_in_zsh(tmp_path / "my-study", tmp_path)


def _verify_in_zsh(study: Path, home: Path) -> None:
    lines = [f'PATH="{PROGRAMS}:$PATH"', 'eval "$(trapkit shell-init zsh)"', "trap status e2", "trap verify"]
    shown = typed("zsh", study, home, lines)
    assert exits(shown) == [0, 0, 0, 3], shown
    assert "6 finished, 12 missing" in shown
    assert re.search(r"^3 proofs, 0 failures$", shown, re.MULTILINE), shown
