"""Commands of a reader: verify, audit, status, ledger, show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.policy import PolicyFile

Optional = Annotated[str | None, typer.Argument(metavar="ID", help="Only this registration, and what it quotes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Runs = Annotated[Path | None, typer.Option(metavar="DIR", help="Where run files are; default: the study's runs/.")]


def verify(
    identity: Optional = None,
    as_json: AsJson = False,
    runs: Runs = None,
    policy: PolicyFile = None,
    online: Annotated[bool, typer.Option("--online", help="Ask GitHub and witness servers again.")] = False,
    gh_archive: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="GH Archive hours of your own; with --online, fetched into DIR."),
    ] = None,
) -> None:
    """Recompute every verdict; prove what came first.

    Exit 0: all proven. 1: a failure. 3: runs missing, or something
    unprovable or not decidable. 2: no study could be read.

    Example: trapkit verify
    """
    from cli.render.verification import verification_text
    from cli.workflows.verify import verify as verify_study
    from registry.study import find_root
    from registry.witness.policy_file import load_policy
    from verifier.report import dumps, report_json

    trusted = load_policy(policy, find_root(Path()))
    report, _ = verify_study(Path(), identity, runs, policy=trusted, online=online, hours=gh_archive)
    print(dumps(report_json(report)) if as_json else verification_text(report))
    raise typer.Exit(report.exit_code)


def status(identity: Optional = None, as_json: AsJson = False) -> None:
    """List registrations and where their runs stand.

    missing, submitted, waiting, running, finished, failed or lost: by the runs'
    own records, and by what Slurm says of those that have none yet.

    Example: trapkit status e2
    """
    from cli.render.status import status_json, status_text
    from cli.workflows.overview import overview
    from registry.study import open_study

    found = overview(open_study(Path()), identity)
    print(status_json(found) if as_json else status_text(found))


def ledger(runs: Runs = None, policy: PolicyFile = None) -> None:
    """Verify the study and write its ledger.

    The files are evidence/index.html, a page for readers, and the same as
    evidence/LEDGER.md and evidence/ledger.json.

    Example: trapkit ledger
    """
    from cli.workflows.ledger import write_ledger
    from registry.study import find_root
    from registry.witness.policy_file import load_policy

    paths, report = write_ledger(Path(), runs, load_policy(policy, find_root(Path())) if policy else None)
    for path in paths:
        print(f"wrote {path}")
    print("next: git add evidence && git commit -m Ledger && git push")
    print(report.last_line)
    raise typer.Exit(report.exit_code)


def show(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The registration's id.")],
    version: Annotated[int | None, typer.Option(min=1, help="An earlier version; default: the latest.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the frozen bytes.")] = False,
) -> None:
    """Show what a registration promised.

    Example: trapkit show e2
    """
    from cli.render.registration import registration_text
    from cli.workflows.registered import version_of
    from registry.study import open_repository, open_study

    found = version_of(open_repository(open_study(Path())), identity, version)
    print(found.data.decode() if as_json else registration_text(found))


def audit(
    file: Annotated[Path, typer.Argument(metavar="CLAIMS", help="A file of claims, trap-claims-1.")],
    repository: Annotated[
        Path, typer.Option(metavar="DIR", help="A clone of the repository; default: the current folder.")
    ] = Path(),
    online: Annotated[bool, typer.Option("--online", help="Ask GitHub when it was pushed.")] = False,
    policy: PolicyFile = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Archived answers of GitHub: a copy, never independent.")
    ] = None,
    gh_archive: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="GH Archive hours of your own; with --online, fetched into DIR."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check claims about a repository made with other tools.

    Tags, commits, file digests, push times and run starts, in the words of
    verify. Exit codes are verify's.

    Example: trapkit audit claims.yaml --repository clone --online
    """
    from cli.render.claims import audit_json, audit_text
    from cli.workflows.audit import Sources, audit_claims
    from registry.witness.policy_file import load_policy

    sources = Sources(online, gh_archive, answers)
    found = audit_claims(file, repository, load_policy(policy, repository), sources)
    print(audit_json(found) if as_json else audit_text(found))
    raise typer.Exit(found.exit_code)


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    for command in (verify, audit, status, ledger, show):
        app.command()(command)
