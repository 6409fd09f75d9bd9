"""Puts hooks into a bare repository: a line of shell that starts the script
beside it, in a Python that reads no settings of its surroundings.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

_SHELL = '#!/bin/sh\nexec python3 -IS "$(dirname "$0")/{script}"\n'


def install_hook(git_dir: Path, name: str) -> None:
    """Install the hook `name`, `post-receive` or `pre-receive`."""
    folder = git_dir / "hooks"
    folder.mkdir(exist_ok=True)
    script = f"{name.replace('-', '_')}.py"
    source = resources.files("registry") / "witness" / script
    (folder / script).write_bytes(source.read_bytes())
    hook = folder / name
    hook.write_text(_SHELL.format(script=script))
    hook.chmod(0o755)
