"""The pages say what the program does: commands, options, readings, checks, links."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cli.app import app
from modelf.cells import CELLS
from registry.rule import REFERENCE_VALUES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
ADRS = sorted((DOCS / "adr").glob("*.md"))
PROGRAM: Any = typer.main.get_command(app)


def flat(commands: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Commands by their words; those of a group, `witness serve`, beside the others,
    and the group itself, `ledger`, where it does something alone.
    """
    found: dict[str, Any] = {}
    for name, command in commands.items():
        if getattr(command, "invoke_without_command", False):
            found[before + name] = command
        found |= (
            flat(command.commands, f"{before}{name} ") if hasattr(command, "commands") else {before + name: command}
        )
    return found


COMMANDS = flat(PROGRAM.commands)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"(?:^|(?<=\$\())\s*(?:\$ )?(?:\.venv/bin/)?(?:trapkit|trap) ([a-z][^|;>)#]*)")
# What stands for a value in a line such as `trapkit show ID`.
_STAND_INS = {"SHELL": "bash", "N": "1", "R": "1.35"}


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in _FENCE.findall(text_of(page)) if kind == language]


def section(page: Path, heading: str) -> str:
    found = re.search(rf"^### {re.escape(heading)}$(.*?)(?=^##|\Z)", text_of(page), re.MULTILINE | re.DOTALL)
    assert found, f"{page.name} has no section {heading}"
    return found[1]


def calls(page: Path) -> Iterator[list[str]]:
    """The arguments of every `trapkit ...` or `trap ...` in blocks and code spans."""
    text = text_of(page)
    lines = [line for kind, body in _FENCE.findall(text) if kind in ("sh", "text") for line in body.splitlines()]
    lines += _SPAN.findall(_FENCE.sub("", text))
    for line in lines:
        for found in _CALL.findall(line.replace('"', "")):
            words = found.replace("[", "").replace("]", "").replace("&&", " ").split()
            yield [_STAND_INS.get(word, word) for word in words]


def parse(arguments: list[str]) -> None:
    """Parse as the program does, without running anything."""
    if " ".join(arguments) in COMMANDS or arguments in (["witness"], ["policy"]):
        return  # a command named in running text
    command, rest, context = PROGRAM, list(arguments), PROGRAM.make_context("trapkit", list(arguments))
    while hasattr(command, "commands") and (command is PROGRAM or set(rest) & set(command.commands)):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    page = section(DOCS / "commands.md", name)
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            for option in parameter.opts:
                assert option.startswith("-h") or f"`{option}" in page, f"{name} {option}"
        else:
            shown = (parameter.metavar or parameter.name.upper()).strip("[]{}").upper()
            assert shown in page, f"{name} {shown}"
    examples = [body for kind, body in _FENCE.findall(page) if kind == "sh"]
    assert any(f"trapkit {name}" in example for example in examples), f"{name} has no example"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    assert "Example: " in (COMMANDS[name].help or "")
    assert all(p.help for p in COMMANDS[name].params if p.param_type_name == "option" and p.name != "help")


def test_commands_page_documents_no_command_that_is_not_there() -> None:
    assert set(re.findall(r"^### (.+)$", text_of(DOCS / "commands.md"), re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_the_pages_use_real_commands_and_options(page: Path) -> None:
    for arguments in calls(page):
        try:
            parse(arguments)
        except Exception as error:
            raise AssertionError(f"trapkit {' '.join(arguments)}: {error}") from error


def test_a_wrong_line_would_be_found() -> None:
    for wrong in (["verify", "--no-such-option"], ["no-such-command"], ["run", "e2", "--seed", "x"]):
        with pytest.raises(Exception, match=r"No such|valid integer"):
            parse(wrong)
    assert ["register", "rules/e2.yaml"] in list(calls(ROOT / "README.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    text = _FENCE.sub("", text_of(page))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.is_file(), f"{page.name}: {target}"
        if anchor:
            assert anchor in [slug(h) for h in re.findall(r"^#+ (.+)$", text_of(linked), re.MULTILINE)], target


def slug(heading: str) -> str:
    """The anchor of a heading, as git hosts make it."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).strip().replace(" ", "-")


def test_shell_blocks_are_well_formed() -> None:
    for page in PAGES:
        script = "\n".join(blocks(page, "sh"))
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
        assert done.returncode == 0, f"{page.name}: {done.stderr}"


def test_readme_is_short_and_its_runnable_blocks_are_known() -> None:
    readme = ROOT / "README.md"
    assert len(text_of(readme).splitlines()) < 150
    lines = "".join(blocks(readme, "sh")).splitlines()
    assert lines[:2] == ["make demo", "make test"]
    assert lines[-3:] == ["trap register rules/e2.yaml", "trap run e2 --seed 0", "trap verify"]


def test_the_table_of_readings_is_current() -> None:
    spec = importlib.util.spec_from_file_location("readings_table", DOCS / "readings_table.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    page = text_of(DOCS / "write-a-rule.md")
    assert made.with_table(page) == page, "run: python docs/readings_table.py"


def test_the_rule_page_names_every_field_and_reference_value() -> None:
    page = text_of(DOCS / "write-a-rule.md")
    schema = json.loads((ROOT / "registry" / "schema" / "draft.schema.json").read_text("utf-8"))
    design = schema["properties"]["design"]["properties"]
    arm = design["arms"]["additionalProperties"]["properties"]
    for name in (*schema["properties"], *design, *arm, *design["workload"]["properties"], *REFERENCE_VALUES, *CELLS):
        assert f"`{name}" in page, name


def test_every_check_of_the_verifier_is_explained() -> None:
    named = re.compile(r'(?:\bname(?:, \w+)? = |proven\(\s*|refuted\(\s*|unprovable\(\s*)"([a-z_]+)"')
    found = {name for file in (ROOT / "verifier").glob("*.py") for name in named.findall(text_of(file))}
    assert {"tag_signed", "executed_again", "runs_distinct"} <= found
    page = text_of(DOCS / "verify-a-study.md") + text_of(DOCS / "audit-claims.md")
    assert [name for name in sorted(found) if f"| `{name}` |" not in page] == []


def test_the_simulator_page_gives_every_constant_with_its_origin() -> None:
    page = text_of(DOCS / "simulator.md")
    for constant in CELLS["sglang-300k"].constants:
        row = re.search(rf"^\| `{constant.name}` \|.*\| {constant.origin} \|", page, re.MULTILINE)
        assert row, f"{constant.name} ({constant.origin})"


@pytest.mark.parametrize("cell", ["vllm-300k", "h200-600k", "llama-300k"])
def test_the_simulator_page_gives_the_other_cells_constants(cell: str) -> None:
    page = text_of(DOCS / "simulator.md")
    head = re.search(r"^\| constant \| `vllm-300k`.*$", page, re.MULTILINE)
    assert head
    column = [part.strip(" `") for part in head[0].split("|")].index(cell)
    units = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    costs: Any = CELLS[cell].step_costs
    for name in costs.__dataclass_fields__:
        row = next(line for line in page[head.start() :].splitlines() if line.startswith(f"| `{name}` |"))
        number, *unit = row.split("|")[column].split()
        assert float(number) * (units[unit[0]] if unit else 1) == pytest.approx(getattr(costs, name)), name


@pytest.mark.parametrize("page", ADRS, ids=lambda page: page.stem)
def test_decision_records_have_their_three_parts(page: Path) -> None:
    assert re.findall(r"^## (.+)$", text_of(page), re.MULTILINE) == ["Context", "Decision", "Consequence"]
    assert text_of(page).startswith(f"# {page.name[:4]}. ")


def test_decision_records_are_numbered_without_a_gap() -> None:
    assert [page.name[:4] for page in ADRS] == [f"{n:04d}" for n in range(1, len(ADRS) + 1)]


def test_every_direct_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    record = text_of(DOCS / "adr" / "0002-direct-dependencies.md")
    for requirement in wanted:
        name = re.split(r"[<>=!~\[ ]", requirement)[0]
        assert f"`{name}`" in record, name


def test_the_picture_is_small_undated_and_called_simulated() -> None:
    picture = (DOCS / "pictures" / "e2-hits.svg").read_bytes()
    assert len(picture) < 150_000
    assert b"dc:date" not in picture
    assert b'figure.suptitle(f"SIMULATED' in (DOCS / "pictures" / "draw_e2.py").read_bytes()


def test_the_licence_is_whole() -> None:
    text = text_of(ROOT / "LICENSE")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
