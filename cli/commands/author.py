"""Commands of an author: register, rehearse, draw, predict, run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from registry.executors import Executor

Identity = Annotated[str, typer.Argument(metavar="ID", help="The registration's id, e2 for example.")]


def register(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rule file of the study, committed.")],
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Leave drawing to `draw` or to the next `run`.")] = False,
) -> None:
    """Freeze a rule file, tag and push it, draw its plans.

    The same draft again changes nothing; a changed one becomes a new version.

    Example: trapkit register rules/e2.yaml
    """
    from cli.render.progress import Console
    from cli.render.registration import replay_lines
    from cli.workflows.register import register as register_file
    from registry.study import open_study
    from registry.witness.policy_file import load_policy

    study = open_study(Path())
    with Console() as console:
        outcome = register_file(study, file, load_policy(study=study.root), console, wait=not no_wait)
    for line in replay_lines(outcome.registered.registration):
        print(line)
    if outcome.drawn:
        print(f"next: trapkit run {outcome.registered.registration.id}")
    else:
        print(f"next: trapkit draw {outcome.registered.registration.id}")


def rehearse(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rule file.")],
    seeds: Annotated[int, typer.Option(min=1, max=10_000, help="How many literal seeds.")] = 40,
    reading: Annotated[
        list[str] | None,
        typer.Option(metavar="WINDOW.READING", help="Compare the arms in this reading; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Simulate a rule file over literal seeds.

    Registers nothing. Says how often the rule would pass, and how its readings are distributed.

    Example: trapkit rehearse rules/e2.yaml --seeds 40
    """
    from cli.render.comparison import chosen_readings
    from cli.render.progress import Console
    from cli.render.rehearsal import rehearsal_json, rehearsal_text
    from cli.workflows.explore import load_rule_file, rehearse_file

    chosen = chosen_readings(reading or [], load_rule_file(file)) if reading else []
    with Console() as console:
        result = rehearse_file(file, console, seeds)
    print(rehearsal_json(result, chosen) if as_json else rehearsal_text(result, chosen))


def draw(identity: Identity) -> None:
    """Read a registration's beacon value; archive the log.

    Example: trapkit draw e2
    """
    from cli.render.progress import Console
    from cli.workflows.draw import draw as draw_plans
    from cli.workflows.registered import latest
    from registry.study import open_repository, open_study
    from registry.witness.policy_file import load_policy

    study = open_study(Path())
    policy = load_policy(study=study.root)
    repository = open_repository(study)
    with Console() as console:
        draw_plans(study, repository, latest(repository, identity), policy, console)


def predict(identity: Identity) -> None:
    """Compute a registration's predictions and push them.

    They are frozen under pred/<id>/v<N> before any run; `run` does this by
    itself where it has not been done.

    Example: trapkit predict e2
    """
    from cli.render.progress import Console
    from cli.workflows.predict import predict as predict_plans
    from cli.workflows.registered import latest
    from registry.study import open_repository, open_study
    from registry.witness.policy_file import load_policy

    study = open_study(Path())
    policy = load_policy(study=study.root)
    repository = open_repository(study)
    with Console() as console:
        predict_plans(study, repository, latest(repository, identity), policy, console)
    print(f"next: trapkit run {identity}")


def run(
    identity: Annotated[
        str, typer.Argument(metavar="ID", help="The registration's id; with --exploratory also a FILE.")
    ],
    seed: Annotated[int | None, typer.Option(help="Only this seed.")] = None,
    arm: Annotated[str | None, typer.Option(help="Only this arm.")] = None,
    rate: Annotated[float | None, typer.Option(help="Only this rate, a multiple of lambda_ref.")] = None,
    exploratory: Annotated[
        bool, typer.Option("--exploratory", help="Run a rule file unregistered; marked so for ever.")
    ] = False,
    executor: Annotated[
        Executor, typer.Option(help="local: this machine's queue; slurm: a job a run, see executors in study.yaml.")
    ] = Executor.LOCAL,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Submit jobs and leave them; status shows them.")] = False,
) -> None:
    """Run what is missing: arm x rate x seed.

    It must be tagged, pushed and drawn (a draw is made if it is due). Runs
    whose jobs are open are not missing: with --executor slurm they are waited
    for, and Ctrl-C leaves them be.

    Example: trapkit run e2 --seed 0
    """
    from cli.render.progress import Console
    from cli.workflows.registered import latest
    from cli.workflows.run import How, Selection, check_here, run_registration
    from registry.study import open_repository, open_study
    from registry.witness.policy_file import load_policy

    study = open_study(Path())
    selection, how = Selection(seed, arm, rate), How(executor, not no_wait)
    with Console() as console:
        if exploratory:
            from cli.workflows.explore import explore

            check_here(how)

            folders = explore(study, identity, selection, console)
            print(f"{len(folders)} exploratory runs (simulated), never evidence: {study.runs / 'exploratory'}")
            return
        repository = open_repository(study)
        policy = load_policy(study=study.root)
        outcome = run_registration(study, repository, latest(repository, identity), policy, console, selection, how)
    made = "submitted" if outcome.open else "made"
    print(f"{outcome.ran} runs {made} now ({outcome.kind}), {outcome.complete} of {outcome.asked} complete")
    for failure in outcome.failures:
        print(f"  failed: {failure}")
    if outcome.open:
        print(f"next: trapkit status {identity}, then trapkit run {identity} --executor slurm")
    else:
        print(f"next: trapkit verify {identity}")
    if outcome.failures:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    for command in (register, rehearse, draw, predict, run):
        app.command()(command)
