"""The trap on a real engine, end to end, in a folder of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cli.render.engine_outcome import engine_outcome_text
from cli.render.verification import verification_text
from cli.workflows.beside import beside
from cli.workflows.demo import DemoOutcome, begin_demo
from cli.workflows.ledger import write_ledger
from cli.workflows.register import register
from cli.workflows.registered import latest
from cli.workflows.reporter import Reporter
from cli.workflows.run import run_registration
from cli.workflows.study_figures import page_figures
from registry.errors import EngineError
from registry.publish import publish
from registry.study import Study, open_repository, open_study
from registry.study_settings import STUDY_FILE
from registry.witness.policy_file import built_in
from runners.engines.random_model import VOCABULARY_SIZE, write_random_model

CELL = "vllm-cpu-mini"
PYTHON = "TRAP_VLLM_PYTHON"
"""Variable with the Python of the engine's environment."""

BUILT = Path("build/engines/vllm-cpu/bin/python")
"""Where `make engine-vllm-cpu` puts it, seen from the project."""

SETUP: dict[str, Any] = {
    "adapter": "vllm",
    "model": f"models/{CELL}",
    "vocabulary_tokens": VOCABULARY_SIZE,
    "chunk_tokens": 2048,
    "batch_requests": 64,
    "command": [f"${{{PYTHON}}}", "-m", "vllm.entrypoints.openai.api_server"],
    "arguments": ["--load-format", "dummy", "--skip-tokenizer-init", "--dtype", "float32", "--enforce-eager"],
    "environment": {
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_SERVER_DEV_MODE": "1",
    },
    "hang_timeout_s": 60,
}
"""The cell's section of study.yaml."""


def run_engine_demo(folder: Path, reporter: Reporter, *, fresh: bool) -> DemoOutcome:
    """Calibrate vLLM on this machine's CPU, register e2-mini, run it, verify,
    and write the ledger; simulated runs of the same plans are shown beside it.

    EngineError where the engine's environment is not there.
    """
    _check_environment()
    root = begin_demo(folder, reporter, fresh=fresh)
    study = add_engine(root)
    repository, policy = open_repository(study), built_in()
    for name in (f"all-miss-{CELL}", "e2-mini"):
        reporter.say(f"trapkit register rules/{name}.yaml")
        register(study, root / "rules" / f"{name}.yaml", policy, reporter)
        reporter.say(f"trapkit run {name}")
        outcome = run_registration(study, repository, latest(repository, name), policy, reporter)
        for failure in outcome.failures:
            reporter.say(failure)
    reporter.say("trapkit ledger, trapkit verify")
    written = write_ledger(root, draw=page_figures)
    files: dict[str, bytes | Path] = {path.relative_to(root).as_posix(): path for path in written.paths}
    publish(repository, study.settings.remote, files, "Ledger", "trapkit ledger")
    report = written.report
    parts = [
        engine_outcome_text(beside(root, "e2-mini", reporter)),
        f"ledger: {written.paths[1]}",
        verification_text(report),
    ]
    return DemoOutcome("\n\n".join(parts), report.exit_code)


def add_engine(root: Path) -> Study:
    """Give the study at `root` the cell's engine and its model, committed and
    pushed; the study as it is then.
    """
    write_random_model(root / "models" / CELL)
    with (root / STUDY_FILE).open("a", encoding="utf-8") as file:
        # JSON is YAML, and quotes what YAML would read otherwise.
        file.write(f"engines: {json.dumps({CELL: SETUP}, indent=1)}\n")
    study = open_study(root)
    repository = open_repository(study)
    repository.git.add("--all")
    repository.git.commit("--no-gpg-sign", "-m", f"The engine of {CELL}")
    repository.git.push(study.settings.remote, study.settings.branch)
    return study


def _check_environment() -> None:
    if os.environ.get(PYTHON):
        return
    if not BUILT.is_file():
        raise EngineError(
            "the engine's environment is not there",
            where=str(BUILT),
            remedy=f"make engine-vllm-cpu builds it, or {PYTHON} names the Python of another; see trapkit doctor",
        )
    os.environ[PYTHON] = str(BUILT.absolute())
