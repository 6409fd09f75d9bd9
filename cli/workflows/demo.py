"""The main job once, end to end, in a folder of its own."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from cli.render.outcome import outcome_text
from cli.render.verification import verification_text
from cli.workflows.init import init_study
from cli.workflows.ledger import write_ledger
from cli.workflows.register import register
from cli.workflows.registered import latest
from cli.workflows.remotes import RemoteChoice
from cli.workflows.reporter import Reporter
from cli.workflows.run import run_registration
from cli.workflows.study_figures import page_figures
from registry.errors import StudyError
from registry.publish import publish
from registry.study import open_repository, open_study
from registry.witness.policy_file import built_in


@dataclass(frozen=True)
class DemoOutcome:
    """What the demo shows at its end, and verify's exit code."""

    text: str
    exit_code: int


def run_demo(folder: Path, reporter: Reporter, *, fresh: bool) -> DemoOutcome:
    """Init, register, draw, run, verify and write the ledger in `folder`.

    Its signing key lies beside it, unless TRAP_SIGNING_KEY names another.
    """
    root = begin_demo(folder, reporter, fresh=fresh)
    study = open_study(root)
    reporter.say("trapkit register rules/e2.yaml")
    policy = built_in()
    register(study, root / "rules" / "e2.yaml", policy, reporter)
    repository = open_repository(study)
    reporter.say("trapkit run e2")
    run_registration(study, repository, latest(repository, "e2"), policy, reporter)
    reporter.say("trapkit ledger, trapkit verify")
    written = write_ledger(root, draw=page_figures)
    files: dict[str, bytes | Path] = {path.relative_to(root).as_posix(): path for path in written.paths}
    publish(repository, study.settings.remote, files, "Ledger", "trapkit ledger")
    proof = written.report.proofs[-1]
    parts = [outcome_text(proof), f"ledger: {written.paths[1]}", verification_text(written.report)]
    return DemoOutcome("\n\n".join(parts), written.report.exit_code)


def begin_demo(folder: Path, reporter: Reporter, *, fresh: bool) -> Path:
    """An empty study with a local remote, its key beside it; `fresh` removes
    an earlier demo. Returns the study's folder, resolved.
    """
    root = folder.resolve()
    if fresh:
        _remove_earlier(root)
    os.environ.setdefault("TRAP_SIGNING_KEY", str(root.with_name(f"{root.name}-signing-key")))
    reporter.say(f"trapkit init {folder} --local-remote --commit-runs")
    init_study(root, RemoteChoice(local=True), commit_runs=True)
    return root


def _remove_earlier(root: Path) -> None:
    """Remove an earlier demo, and nothing that is not one."""
    beside = [root.with_name(f"{root.name}-remote.git"), root.with_name(f"{root.name}-signing-key")]
    if root.exists() and any(root.iterdir()) and not ((root / "study.yaml").is_file() and beside[0].is_dir()):
        raise StudyError("the folder is not an earlier demo", where=str(root), remedy="name another folder")
    for path in (root, *beside):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
