"""Publishing a ledger: its checkpoint pushed under a signed tag, and witnessed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import git

from cli.workflows.ledger import PAGE_FILE, write_files
from cli.workflows.ledger_earlier import LEDGER_FILE, earlier_ledger, last_publication, publications
from cli.workflows.receipts import archive_receipts, pushed_tag
from cli.workflows.registered import tags_on_remote
from cli.workflows.reporter import Reporter
from cli.workflows.tagging import FrozenFile, push_frozen
from ledger.reading import Ledger
from registry.canonical import sha256_hex
from registry.errors import RegistrationError, StudyError
from registry.study import Study
from registry.witness.policy import Policy

_DATA_FILE = re.compile(r'href="(figures/[A-Za-z0-9-][A-Za-z0-9.-]*\.csv)"')


@dataclass(frozen=True)
class Published:
    """A published ledger: its tag, and whether it was pushed now."""

    tag: str
    ledger: Ledger
    new: bool


def publish_ledger(study: Study, repository: git.Repo, policy: Policy, reporter: Reporter) -> Published:
    """Commit the ledger's files, tag the commit `ledger/v<N>`, push both at once,
    and archive what the witnesses answer. Nothing is pushed where the last one
    published is this very ledger; missing receipts are asked for again.
    """
    path = study.root / LEDGER_FILE
    _check_remote_known(study, repository)
    found = earlier_ledger(study.root) if path.is_file() else None
    if found is None:
        raise StudyError("there is no ledger with a log", where=LEDGER_FILE, remedy="write it: trapkit ledger")
    paths, ledger = write_files(study.root, found.value)
    data = path.read_bytes()
    paths += _page_files(path, sha256_hex(data))
    last = last_publication(study.root)
    new = last is None or last.data != data
    if last is not None and not new:
        tag, tag_object = last.tag, str(repository.git.rev_parse(f"refs/tags/{last.tag}"))
    else:
        tag = f"ledger/v{last.number + 1 if last else 1}"
        beside: dict[str, bytes | Path] = {each.relative_to(study.root).as_posix(): each for each in paths}
        title = f"ledger of size {len(ledger.log)}, root {ledger.checkpoint.root.hex()}"
        frozen = FrozenFile(LEDGER_FILE, data, sha256_hex(data), tag, title, "trapkit ledger publish", beside)
        tag_object = push_frozen(study, repository, frozen)
    archive_receipts(study, repository, pushed_tag(repository, study, tag, tag_object, data), policy, reporter)
    return Published(tag, ledger, new)


def _page_files(ledger: Path, sha256: str) -> list[Path]:
    """The ledger's page and what lies beside it; StudyError where the page is
    missing or of another ledger.
    """
    page = ledger.with_name(PAGE_FILE)
    text = page.read_text("utf-8") if page.is_file() else ""
    if f'<meta name="ledger-sha256" content="{sha256}">' not in text:
        raise StudyError("the page is not this ledger's", where=page.name, remedy="write it anew: trapkit ledger")
    return [page, *(ledger.parent / name for name in sorted(set(_DATA_FILE.findall(text))))]


def _check_remote_known(study: Study, repository: git.Repo) -> None:
    """The remote has no published ledger that this clone lacks."""
    unknown = sorted(set(tags_on_remote(repository, study, "ledger/*")) - {tag for _, tag in publications(study.root)})
    if unknown:
        raise RegistrationError(
            "the remote holds published ledgers that this clone lacks",
            value=unknown,
            remedy=f"git pull --rebase --tags {study.settings.remote}, then: trapkit ledger",
        )
