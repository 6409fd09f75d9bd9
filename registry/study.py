"""A study: any git repository with a study.yaml.

Opening one checks what every author command needs: git, a branch, a remote.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from registry.errors import StudyError
from registry.study_settings import STUDY_FILE, StudySettings, parse_settings

if TYPE_CHECKING:
    import git


@dataclass(frozen=True)
class Study:
    """An opened study: `root` is its working tree."""

    root: Path
    settings: StudySettings

    @property
    def runs(self) -> Path:
        """Where run files are written."""
        return self.root / "runs"

    @property
    def evidence(self) -> Path:
        """Where the ledger and the witnesses' answers lie."""
        return self.root / "evidence"


def find_root(start: Path) -> Path:
    """The nearest folder upwards that holds study.yaml."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / STUDY_FILE).is_file():
            return folder
    raise StudyError(
        "no study here", where=str(start), remedy="go to a study's folder, or make one: trapkit init DIR --local-remote"
    )


def open_study(start: Path) -> Study:
    """The study around `start`, whatever state its repository is in."""
    root = find_root(start)
    return Study(root, parse_settings((root / STUDY_FILE).read_bytes()))


def open_repository(study: Study) -> git.Repo:
    """The study's repository for the author's side, checked.

    StudyError without git, outside a repository, on a detached head or the
    wrong branch, without a commit, or without the remote.
    """
    try:
        import git
    except ImportError as error:
        raise StudyError(f"git is not usable: {error}", remedy="install git 2.34 or newer") from None
    try:
        repository = git.Repo(study.root)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        raise StudyError(
            "the study is not a git repository of its own",
            where=str(study.root),
            remedy="git init there, or trapkit init",
        ) from None
    where = str(study.root)
    if repository.head.is_detached:
        raise StudyError("the repository's head is detached", where=where, remedy=f"git switch {study.settings.branch}")
    if not repository.head.is_valid():
        raise StudyError("the repository has no commit yet", where=where, remedy="commit study.yaml first")
    if repository.active_branch.name != study.settings.branch:
        raise StudyError(
            "another branch is checked out",
            where=where,
            value=repository.active_branch.name,
            remedy=f"git switch {study.settings.branch}",
        )
    if study.settings.remote not in [remote.name for remote in repository.remotes]:
        raise StudyError(
            "the study's remote is missing",
            where=where,
            value=study.settings.remote,
            remedy=f"git remote add {study.settings.remote} URL; one that trapkit init --local-remote made can draw",
        )
    return repository
