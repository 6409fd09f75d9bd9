"""Every command has help and an example; help itself stays cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from cli.app import app

HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "git",
    "jsonschema",
    "cel",
    "cryptography",
    "rich",
    "yaml",
    "waitress",
    "requests",
)
COMMANDS = sorted(typer.main.get_command(app).commands.items())  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_command_has_help_and_an_example(name: str, command: object) -> None:
    text = str(getattr(command, "help", ""))
    assert len(text) > 40
    assert "Example:" in text and (f"trapkit {name}" in text)
    for parameter in command.params:  # type: ignore[attr-defined]
        if parameter.name != "help":
            assert getattr(parameter, "help", None), f"{name} {parameter.name} has no help"


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv = ['trapkit', '--help']\n"
        "import cli.app\n"
        "try:\n    cli.app.main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
