"""Makes a study: repository, study.yaml, rule files, key, local witness."""

from __future__ import annotations

import getpass
import re
import socket
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import git

from cli.workflows.remotes import RemoteChoice
from registry.errors import StudyError
from registry.ssh_signature import default_key_path, ensure_key, public_text
from registry.study_settings import STUDY_FILE, BeaconChoice, StudySettings, default_chain, settings_text
from registry.witness.local import create_remote


@dataclass(frozen=True)
class MadeStudy:
    """What `init` made: folders, the key's place, and notes for the user."""

    root: Path
    remote: Path | None
    key: Path
    notes: tuple[str, ...]


def init_study(folder: Path, choice: RemoteChoice, *, commit_runs: bool = False) -> MadeStudy:
    """A new study in `folder`, which must be empty or absent.

    A local remote, a bare repository with the local witness, is made beside
    it, `<folder>-remote.git`, and the study is pushed there.
    """
    root = folder.resolve()
    remote = root.with_name(f"{root.name}-remote.git") if choice.local else None
    for path in filter(None, (root, remote)):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StudyError("the folder is not empty", where=str(path), remedy="name another one")
    key_path = default_key_path()
    if root in key_path.resolve().parents:
        raise StudyError(
            "the signing key must lie outside the study",
            where=str(key_path),
            remedy="set TRAP_SIGNING_KEY to another place",
        )
    key, made = ensure_key(key_path)
    root.mkdir(parents=True, exist_ok=True)
    repository = git.Repo.init(root, initial_branch="main")
    notes = [f"{'made a' if made else 'uses the'} signing key {key_path}", *_ensure_identity(repository)]
    if commit_runs:
        # Parquet is compressed already; deflating or differencing it makes every clone slow.
        with repository.config_writer() as config:
            config.set_value("core", "compression", "0")
            config.set_value("pack", "window", "0")
    settings = StudySettings(
        _study_name(root),
        "origin",
        "main",
        choice.witnesses,
        public_text(key),
        commit_runs,
        beacon=BeaconChoice(default_chain(list(choice.witnesses))),
        github=choice.github,
        server=choice.server,
        timestamp_authorities=choice.authorities,
    )
    _write_files(root, settings)
    repository.git.add("--all")
    repository.git.commit("--no-gpg-sign", "-m", "Begin the study")
    if remote:
        create_remote(remote)
        repository.create_remote("origin", str(remote))
        repository.git.push("--set-upstream", "origin", "main")
    elif choice.url:
        repository.create_remote("origin", choice.url)
        notes += [*choice.notes, f"remote {choice.url}; first: git push -u origin main"]
        if choice.server:
            notes.append(f"the witness server's key, to be compared with its operator's: {choice.server.key}")
    else:
        notes.append("no remote yet: git remote add origin URL, then git push -u origin main")
        notes.append("plans are drawn by a remote with the local witness: trapkit init DIR --local-remote makes one")
    return MadeStudy(root, remote, key_path, tuple(notes))


def _study_name(root: Path) -> str:
    return re.sub("[^a-z0-9-]+", "-", root.name.lower()).strip("-")[:63] or "study"


def _write_files(root: Path, settings: StudySettings) -> None:
    (root / STUDY_FILE).write_text(settings_text(settings), encoding="utf-8")
    (root / ".gitattributes").write_text("* -text\n", encoding="utf-8")
    ignored = "*.partial\n" if settings.commit_runs else "runs/\n*.partial\n"
    (root / ".gitignore").write_text(ignored, encoding="utf-8")
    (root / "rules").mkdir()
    for source in resources.files("rules").iterdir():
        if source.name.endswith(".yaml"):
            (root / "rules" / source.name).write_bytes(source.read_bytes())


def _ensure_identity(repository: git.Repo) -> list[str]:
    """Git refuses to commit without a name: the study gets one of its own."""
    try:
        repository.git.var("GIT_COMMITTER_IDENT")
        if repository.git.config("--default", "", "--get", "user.email"):
            return []
    except git.GitCommandError:
        pass
    name = getpass.getuser()
    with repository.config_writer() as config:
        config.set_value("user", "name", name)
        config.set_value("user", "email", f"{name}@{socket.gethostname() or 'localhost'}")
    return [f"git knew no name: this study commits as {name} (git config user.name changes it)"]
