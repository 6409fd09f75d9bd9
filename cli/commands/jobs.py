"""Commands about runs under way: cancel, run-one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def cancel(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The registration's id.")],
    seed: Annotated[int | None, typer.Option(help="Only this seed.")] = None,
    arm: Annotated[str | None, typer.Option(help="Only this arm.")] = None,
    rate: Annotated[float | None, typer.Option(help="Only this rate, a multiple of lambda_ref.")] = None,
) -> None:
    """Cancel what goes on: jobs, or this machine's run.

    Attempts that had begun are reported as abandoned; `run` makes new ones.

    Example: trapkit cancel e2 --seed 0
    """
    from cli.workflows.cancel import cancel as cancel_runs
    from cli.workflows.registered import latest
    from cli.workflows.run import Selection
    from registry.study import open_repository, open_study

    study = open_study(Path())
    repository = open_repository(study)
    done = cancel_runs(study, repository, latest(repository, identity), Selection(seed, arm, rate))
    if done.jobs:
        print(f"cancelled {len(done.jobs)} jobs, reported {done.results} attempts")
    if done.interrupted:
        print("interrupted the trap run of this study: it reports what it has and ends")
    if not done.jobs and not done.interrupted:
        print("nothing goes on")


def run_one(
    batch: Annotated[Path, typer.Argument(metavar="BATCH", help="batch.json of a batch that run announced.")],
    index: Annotated[int, typer.Argument(metavar="INDEX", help="Which of its runs, from 0.")],
) -> None:
    """Make one announced attempt here: what a Slurm job does.

    Example: trapkit run-one runs/e2.v1/.jobs/4f1c20aa/batch.json 0
    """
    from runners.slurm.attempt import make_attempt

    make_attempt(str(batch), index)


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(cancel)
    app.command("run-one")(run_one)
