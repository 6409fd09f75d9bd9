"""`trapkit shell-init`, tried in real shells: ours reaches the program, the rest stays the shell's."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from cli.app import app
from cli.shell_init import SUBCOMMANDS, function_for

SCRIPTED = {"bash": ("--norc",), "zsh": ("-f",), "fish": ("--no-config",)}
HOW = {"bash": 'eval "$(cat init)"', "zsh": 'eval "$(cat init)"', "fish": "cat init | source"}
TIMEOUT_SECONDS = 20


@pytest.fixture(params=sorted(SCRIPTED))
def shell(request: pytest.FixtureRequest) -> str:
    """The name of a shell that is installed here."""
    return installed(request.param)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder with bin/trapkit, which prints its arguments as <program:a|b> and exits 7."""
    program = tmp_path / "bin" / "trapkit"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nIFS='|'\nprintf '<%s:%s>\\n' program \"$*\"\nexit 7\n")
    program.chmod(0o755)
    return tmp_path


def installed(shell: str) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    return shell


def environment(room: Path, path: str | None = None) -> dict[str, str]:
    return {
        "PATH": f"{room / 'bin'}:/usr/bin:/bin" if path is None else path,
        "HOME": str(room),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }


def scripted(
    shell: str, room: Path, script: str, *, ours: bool = True, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script file; with `ours`, our function is defined first."""
    file = room / "script"
    file.write_text((function_for(shell) if ours else "") + script)
    program = shutil.which(shell) or shell
    return subprocess.run(
        [program, *SCRIPTED[shell], str(file)],
        cwd=room,
        env=environment(room, path),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def typed(shell: str, room: Path, lines: str) -> tuple[str, int]:
    """Type lines into an interactive shell on a terminal of its own: what it shows, and its exit code."""
    (room / "init").write_text(function_for(shell))
    master, slave = pty.openpty()
    own_terminal = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", own_terminal, shutil.which(shell) or shell, *SCRIPTED[shell], "-i"],
        cwd=room,
        env=environment(room),
        stdin=slave,
    ) as process:
        os.close(slave)
        os.write(master, f"{HOW[shell]}\n{lines}".encode())
        shown = everything(master)
        os.close(master)
        return shown, process.wait(timeout=TIMEOUT_SECONDS)


def everything(master: int) -> str:
    """What a terminal shows until its last program is gone, or has been silent for too long."""
    shown = b""
    while select.select([master], [], [], TIMEOUT_SECONDS)[0]:
        try:
            block = os.read(master, 65536)
        except OSError:  # Linux says EIO at the end
            break
        if not block:
            break
        shown += block
    return shown.decode(errors="replace").replace("\r", "")


def test_the_words_are_the_commands_of_the_program() -> None:
    group = typer.main.get_command(app)
    assert sorted(SUBCOMMANDS) == sorted(group.commands)  # type: ignore[attr-defined]


def test_the_texts_are_whole_and_load_nothing_heavy() -> None:
    for name in SCRIPTED:
        assert re.findall("@[A-Z_]+@", function_for(name)) == []
    code = "import sys, cli.shell_init; sys.exit('typer' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_subcommand_reaches_the_program(shell: str, room: Path) -> None:
    lines = [f"trap {word}" for word in SUBCOMMANDS]
    done = scripted(shell, room, "\n".join([*lines, "trap run 'a b' --json ''", "trap init INT ./x", ""]))
    assert done.stdout.splitlines() == [
        *(f"<program:{word}>" for word in SUBCOMMANDS),
        "<program:run|a b|--json|>",
        "<program:init|INT|./x>",
    ]
    assert done.returncode == 7
    assert done.stderr == ""


def test_a_subcommand_redirects_pipes_and_fails_like_a_program(shell: str, room: Path) -> None:
    script = "trap verify > out\ntrap show e2 | cat\ntrap status || echo failed\ncat out\n"
    done = scripted(shell, room, script)
    assert done.stdout.splitlines() == ["<program:show|e2>", "<program:status>", "failed", "<program:verify>"]


@pytest.mark.parametrize("shell", ["bash", "zsh"], indirect=True)
def test_a_failing_subcommand_meets_the_users_traps_once(shell: str, room: Path) -> None:
    script = (
        "set -eu\ntrap 'echo bye' EXIT\ntrap 'echo failed' ERR\ntrap verify || echo caught\ntrap verify\necho never\n"
    )
    done = scripted(shell, room, script)
    assert done.stdout.splitlines() == ["<program:verify>", "caught", "<program:verify>", "failed", "bye"]
    assert done.returncode == 7
    returning = "trap 'echo returned' RETURN\ntrap verify\nf() { echo f; }\nf\n. /dev/null\n"
    if shell == "bash":
        assert scripted(shell, room, returning).stdout.splitlines() == ["<program:verify>", "f", "returned"]


@pytest.mark.parametrize("signals", ["EXIT", "INT TERM", "SIGUSR1", "2"])
def test_an_action_named_like_a_subcommand_is_the_shells(shell: str, room: Path, signals: str) -> None:
    script = f"trap verify {signals}\n" + ("trap -p" if shell == "fish" else "trap") + "\n"
    ours = scripted(shell, room, script)
    assert ours.stdout == scripted(shell, room, script, ours=False).stdout
    assert "verify" in ours.stdout
    assert "program" not in ours.stdout


def test_without_the_program_it_says_so_and_exits_127(shell: str, room: Path) -> None:
    done = scripted(shell, room, "trap verify\n", path="/usr/bin:/bin")
    assert done.returncode == 127
    assert "trapkit is not on PATH" in done.stderr


def test_defining_it_twice_changes_nothing(shell: str, room: Path) -> None:
    done = scripted(shell, room, function_for(shell) + "trap 'echo by-trap' EXIT\ntrap verify\necho last\n")
    assert done.stdout.splitlines() == ["<program:verify>", "last", "by-trap"]


def test_typed_into_an_interactive_shell(shell: str, room: Path) -> None:
    listing = "trap -p" if shell == "fish" else "trap"
    lines = (
        "trap verify 'a b'\n"
        "trap 'printf %s-%s, exit fired' EXIT\n"
        "trap 'printf %s-%s, no usr1' USR1\n"
        "trap - USR1\n"
        f"{listing} > listed\n"
        "printf '%s-%s\\n' still here\n"
        "exit 4\n"
    )
    shown, code = typed(shell, room, lines)
    assert "<program:verify|a b>" in shown
    assert shown.count("exit-fired,") == 1
    assert shown.index("still-here") < shown.index("exit-fired,")
    assert code == 4
    listed = (room / "listed").read_text()
    assert "exit fired" in listed
    assert "usr1" not in listed


def test_the_real_program_answers(shell: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    launcher = tmp_path / "bin" / "trapkit"
    root = Path(__file__).parents[2]
    launcher.write_text(
        f"#!/bin/sh\nPYTHONPATH='{root}' exec '{sys.executable}' -c 'from cli.app import main; main()' \"$@\"\n"
    )
    launcher.chmod(0o755)
    done = scripted(shell, tmp_path, "trap verify\n")
    assert done.returncode == 2
    assert "no study here" in done.stderr
    assert scripted(shell, tmp_path, f"trapkit shell-init {shell}\n", ours=False).stdout == function_for(shell)


BASH = {
    "list, set, reset, ignore": """
        trap -- 'echo "bye $x"' EXIT; trap '' HUP; trap 'echo t' sigterm
        trap; trap -p; trap -p TERM; trap -l | head -2
        trap - TERM; trap TERM; trap 2 3; trap; x=1
    """,
    "a wrong signal": """
        trap x INT NOSIG TERM; echo $?; trap x; echo $?; trap -z; echo $?; trap
    """,
    "subshells": """
        trap 'echo outer' EXIT
        echo "seen $(trap)"; (trap 'echo inner' EXIT); (trap - EXIT; trap); (trap)
        trap > file; cat file
    """,
    "inside a function and inside an action": """
        f() { trap 'echo bye' EXIT; trap -p; echo in f; }; f
        trap 'echo usr1; trap - USR1; trap "echo new" EXIT' USR1
        kill -USR1 $$; trap
    """,
    "RETURN": """
        f() { trap 'echo returned' RETURN; trap - INT; echo in f; }; f
        trap -p RETURN; f; trap 'echo top' RETURN; trap -p; . /dev/null; trap - RETURN; trap -p
    """,
    "DEBUG": """
        trap 'D=1' DEBUG; trap -p DEBUG; trap; trap - DEBUG; trap -p; D=2; echo $D
    """,
    "ERR": """
        trap 'echo E' ERR; false; trap - ERR; false; trap 'echo E2' ERR; trap x NOSIG
        trap '' ERR; false; trap ERR; false; trap 'echo E3' ERR; trap -- - ERR; false; true
    """,
    "ERR, inherited": """
        set -E; trap 'echo E' ERR; trap; false; trap x NOSIG; trap - ERR; trap; false; true
    """,
    "strict": """
        set -euo pipefail
        trap 'echo bye' EXIT; trap; trap x NOSIG || echo caught; trap x NOSIG; echo never
    """,
}
ZSH = {
    "list, set, reset, ignore": """
        trap -- 'echo "bye $x"' EXIT; trap '' HUP; trap "echo 't'" SIGTERM
        trap; trap - TERM; trap TERM; trap 2 3; trap; trap -p; echo $?; trap -l; echo $?; x=1
    """,
    "a wrong signal": """
        trap x INT NOSIG TERM; echo $?; trap 'if' INT; echo $?; trap; trap -; echo $?; trap
    """,
    "subshells": """
        trap 'echo outer' EXIT
        echo "seen $(trap)"; (trap 'echo inner' EXIT); (trap - EXIT; trap); (trap)
        trap > file; cat file
    """,
    "EXIT of a function is the function's": """
        trap 'echo shell' EXIT
        f() { trap 'echo end of f' EXIT; trap; echo in f }; f
        g() { builtin trap 'echo never' EXIT; trap - EXIT; trap; echo in g }; g
        h() { setopt localoptions localtraps; trap 'echo never' INT; trap }; h; trap
        k() { emulate -L sh; trap 'echo k' EXIT; trap }; k; trap
    """,
    "POSIX_TRAPS": """
        setopt posixtraps; f() { trap 'echo shell' EXIT; echo in f }; f; trap; echo last
    """,
    "inside an action": """
        trap 'echo usr1; trap - USR1; trap "echo new" EXIT' USR1; kill -USR1 $$; trap
        TRAPUSR2() { trap 'echo t' TERM; trap - INT }; kill -USR2 $$; trap
    """,
    "ZERR and DEBUG": """
        trap 'echo E' ZERR; false; trap; trap x NOSIG; trap - ZERR; false
        trap 'D=1' DEBUG; trap; trap - DEBUG; D=2; trap; echo $D
    """,
    "other options": """
        setopt ksharrays shwordsplit rcquotes; trap 'echo a  "b c"' TERM INT; trap; kill -TERM $$
    """,
    "strict": """
        set -eu
        trap 'echo bye' EXIT; trap; trap x NOSIG || echo caught; trap x NOSIG; echo never
    """,
    "errors that return": """
        f() { setopt localoptions errreturn; trap x NOSIG; echo never }; f; echo $?
    """,
}
FISH = {
    "list, set, reset": """
        trap 'echo bye' EXIT; trap 'echo usr1' SIGUSR1; trap; trap -p EXIT; trap -l
        kill -USR1 $fish_pid; sleep 0.05; trap - USR1; trap
    """,
    "wrong ones": """
        trap ''; echo $status; trap --bad; echo $status; trap x; echo $status
    """,
}
SCRIPTS = [
    pytest.param(shell, script, id=f"{shell}: {name}")
    for shell, scripts in (("bash", BASH), ("zsh", ZSH), ("fish", FISH))
    for name, script in scripts.items()
]


@pytest.mark.parametrize(("shell_name", "script"), SCRIPTS)
def test_a_script_runs_as_without_us(shell_name: str, script: str, room: Path) -> None:
    """The same script with and without our function prints the same and exits the same."""
    installed(shell_name)
    script = "\n".join(line.strip() for line in script.strip().splitlines()) + "\n"
    plain = scripted(shell_name, room, script, ours=False)
    ours = scripted(shell_name, room, script)
    assert plain.stdout
    assert (ours.stdout, ours.returncode) == (plain.stdout, plain.returncode)
    assert len(ours.stderr.splitlines()) == len(plain.stderr.splitlines())


def test_bash_in_posix_mode_is_told(room: Path) -> None:
    script = "set -o posix\n" + function_for("bash") + "trap 'echo bye' EXIT\n"
    done = scripted(installed("bash"), room, script, ours=False)
    assert done.stdout == "bye\n"
    assert "type trapkit" in done.stderr
