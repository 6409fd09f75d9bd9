"""The house's rules: imports run downwards, and rooms stay small."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("modelf", "registry", "artifacts", "runners", "verifier", "ledger", "cli")
ALLOWED = {
    "modelf": set(),
    "registry": {"modelf"},
    "artifacts": {"modelf", "registry.errors"},
    "runners": {"modelf", "registry", "artifacts"},
    "verifier": {"modelf", "registry", "artifacts"},
    "ledger": {"modelf", "registry", "artifacts", "verifier"},
    "cli": {"modelf", "registry", "artifacts", "runners", "verifier", "ledger"},
}
PURE = {
    "collections",
    "enum",
    "itertools",
    "numpy",
    "scipy",
    "__future__",
    "dataclasses",
    "fractions",
    "math",
    "json",
    "functools",
    "importlib",
    "typing",
}


def modules() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield str(node.module)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_downwards(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    for name in imports(path):
        top = name.partition(".")[0]
        if top in ROOMS and top != room:
            assert top in ALLOWED[room] or name in ALLOWED[room], f"{room} imports {name}"


def test_the_theory_has_no_io_but_its_own_data() -> None:
    for path in (ROOT / "modelf").glob("*.py"):
        for name in imports(path):
            assert name.partition(".")[0] in PURE | {"modelf"}, f"{path.name} imports {name}"


def test_rules_hold_no_code() -> None:
    for path in (ROOT / "rules").rglob("*.py"):
        body = ast.parse(path.read_text()).body
        assert all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def test_rooms_stay_small() -> None:
    large = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in modules()}
    assert {name: lines for name, lines in large.items() if lines > 250} == {}


def test_every_room_is_packaged() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packaged = set(settings["tool"]["setuptools"]["packages"])
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in modules()} | {
        "rules",
        "registry.schema",
        "ledger.schema",
    }
    assert packaged == found


def test_everything_installed_is_pinned() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        re.split("==", line)[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = settings["dependencies"] + settings["optional-dependencies"]["test"]
    assert {re.split("[<>=]", name)[0].lower() for name in wanted} <= pinned
