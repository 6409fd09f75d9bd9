"""Commands about a study's ledger: ledger, ledger verify, prove, publish, published,
rotate, revoke.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.policy import PolicyFile

Runs = Annotated[Path | None, typer.Option(metavar="DIR", help="Where run files are; default: the study's runs/.")]

group = typer.Typer(
    name="ledger",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@group.callback()
def ledger(context: typer.Context, runs: Runs = None, policy: PolicyFile = None) -> None:
    """Verify the study and write its ledger.

    The files are evidence/ledger.json, evidence/LEDGER.md and evidence/index.html,
    a page with pictures. What is logged is carried over, what is new is
    appended, and signed where the key is.

    Example: trapkit ledger
    """
    if context.invoked_subcommand is not None:
        return
    from cli.render.ledger import summary
    from cli.workflows.ledger import key_at_hand, write_ledger
    from cli.workflows.study_figures import page_figures
    from registry.ssh_signature import public_text
    from registry.study import find_root
    from registry.witness.policy_file import load_policy

    chosen = load_policy(policy, find_root(Path())) if policy else None
    written = write_ledger(Path(), runs, chosen, page_figures)
    for path in written.paths:
        print(f"wrote {path}")
    print(summary(written.ledger))
    key = key_at_hand()
    if key is not None and public_text(key) == written.ledger.signer:
        print("next: trapkit ledger publish")
    print(written.report.last_line)
    raise typer.Exit(written.report.exit_code)


@group.command()
def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A ledger.json, a proof from one, or an auditor's statement.")
    ],
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help='The public key that it must rest on: "ssh-ed25519 AAAA...".')
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(metavar="EARLIER", help="An earlier ledger or checkpoint, from which it must have grown."),
    ] = None,
) -> None:
    """Check a ledger alone, offline, without its study.

    Exit 0: it holds, and is signed. 1: it does not hold. 3: it holds
    together, and nobody signed it. 2: no file could be read.

    Example: trapkit ledger verify evidence/ledger.json --since earlier.json
    """
    from cli.render.ledger import checked_text, refused_text
    from cli.workflows.ledger_check import check_file
    from registry.errors import CapExceeded, RecordError

    try:
        checked = check_file(file, key, since)
    except (RecordError, CapExceeded) as error:
        print(refused_text(error))
        raise typer.Exit(1) from None
    print(checked_text(checked))
    raise typer.Exit(0 if checked.signed else 3)


@group.command()
def prove(
    tag: Annotated[str, typer.Argument(metavar="TAG", help="A tag of the ledger, reg/e2/v1 for example.")],
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The ledger; default: the study's evidence/ledger.json.")
    ] = None,
) -> None:
    """Print a proof that a finding stands in the log.

    It holds the finding, its path to the root, the checkpoint and the
    statements about keys: trapkit ledger verify accepts it alone.

    Example: trapkit ledger prove reg/e2/v1 > proof.json
    """
    from cli.workflows.ledger_check import read_capped
    from cli.workflows.ledger_earlier import LEDGER_FILE
    from ledger.proving import inclusion_proof
    from ledger.reading import ledger_bytes, read_ledger
    from registry.study import find_root

    path = file or find_root(Path()) / LEDGER_FILE
    print(ledger_bytes(inclusion_proof(read_ledger(read_capped(path), str(path)), tag)).decode(), end="")


@group.command()
def publish() -> None:
    """Commit, tag and push the ledger, so that witnesses see it.

    The tag is ledger/v<N>, signed with the study's key. The same ledger is
    published once.

    Example: trapkit ledger publish
    """
    from cli.render.ledger import summary
    from cli.render.progress import Console
    from cli.workflows.ledger_publish import publish_ledger
    from registry.study import find_root, open_repository, open_study
    from registry.witness.policy_file import load_policy

    study = open_study(Path())
    with Console() as console:
        published = publish_ledger(study, open_repository(study), load_policy(study=find_root(Path())), console)
    print(f"{'published as' if published.new else 'published already:'} {published.tag}")
    print(summary(published.ledger))


@group.command()
def published(
    online: Annotated[bool, typer.Option("--online", help="Ask GitHub and witness servers again.")] = False,
    policy: PolicyFile = None,
) -> None:
    """List published ledgers, and which witness saw each when.

    Each must continue the one before it. Exit 0: they hold, are signed and
    were seen. 1: something is wrong. 3: unsigned, unseen, or none published.

    Example: trapkit ledger published
    """
    from cli.render.ledger import published_text
    from cli.workflows.ledger_published import exit_code, published_ledgers
    from registry.study import find_root
    from registry.witness.policy_file import load_policy

    found = published_ledgers(Path(), load_policy(policy, find_root(Path())), online=online)
    print(published_text(found))
    raise typer.Exit(exit_code(found))


@group.command()
def rotate(
    file: Annotated[
        Path,
        typer.Argument(metavar="KEYFILE", help="The new private key, OpenSSH Ed25519; made if there is none."),
    ],
) -> None:
    """Put a new key in the place of the ledger's.

    The old key and the new one sign that; from then on TRAP_LEDGER_KEY names
    the new one. Registrations keep the study's key.

    Example: trapkit ledger rotate ~/.config/trap/ledger_key
    """
    from cli.render.ledger import summary
    from cli.workflows.ledger_keys import rotate as rotate_key
    from registry.study import open_study

    ledger = rotate_key(open_study(Path()), file.expanduser())
    print(summary(ledger))
    print(f"from now on: export TRAP_LEDGER_KEY={file.expanduser().resolve()}")
    print("next: trapkit ledger, then trapkit ledger publish")


@group.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help='A former public key: "ssh-ed25519 AAAA...".')],
    from_entry: Annotated[
        int, typer.Option(min=0, metavar="N", help="Its signatures on entries from N on count no more.")
    ] = 0,
) -> None:
    """Revoke a former key of the ledger.

    Example: trapkit ledger revoke "ssh-ed25519 AAAA..." --from-entry 5
    """
    from cli.render.ledger import summary
    from cli.workflows.ledger_keys import revoke as revoke_key
    from registry.study import open_study

    print(summary(revoke_key(open_study(Path()), key, from_entry)))
    print("next: trapkit ledger, then trapkit ledger publish")


def add_to(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(group)
