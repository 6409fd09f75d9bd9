"""A clone whose configuration, hooks and remotes would run code when read: nothing runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import command, copy_study, git

HOOKS = """applypatch-msg post-applypatch post-checkout post-commit post-index-change post-merge post-receive
post-rewrite post-update pre-auto-gc pre-commit pre-push pre-receive proc-receive push-to-checkout reference-transaction
sendemail-validate update"""


class Trap:
    """Plants commands in a repository, each of which leaves a file of its own."""

    def __init__(self, root: Path, markers: Path) -> None:
        self.root = root
        self.markers = markers
        markers.mkdir()

    def command(self, name: str) -> str:
        """A shell command that tells that it ran."""
        return f"touch {self.markers / name}; cat"

    def plant(self) -> None:
        """Every key that has git run a command, in the repository's own settings."""
        keys = """core.fsmonitor core.sshCommand core.gitProxy core.pager core.editor core.askPass
        core.alternateRefsCommand credential.helper diff.external diff.x.textconv diff.x.command filter.x.smudge
        filter.x.clean filter.x.process merge.x.driver uploadpack.packObjectsHook remote.origin.uploadpack
        remote.origin.receivepack remote.origin.vcs gpg.program gpg.ssh.program gpg.ssh.defaultKeyCommand
        interactive.diffFilter sequence.editor trailer.x.command pager.log pager.cat-file"""
        for key in keys.split():
            self.set(key, self.command(key))
        for alias in ("rev-parse", "clone", "config", "cat-file", "log", "for-each-ref", "rev-list"):
            self.set(f"alias.{alias}", f"!{self.command(f'alias-{alias}')}")
        self.set("core.hooksPath", str(self.hooks(self.markers.with_name("elsewhere"))))
        self.hooks(self.root / ".git/hooks")
        (self.root / ".git/info/attributes").write_text("* filter=x diff=x merge=x text\n")
        self.set("protocol.ext.allow", "always")
        self.set(f"url.ext::sh -c touch% {self.markers}/insteadOf% .insteadOf", str(self.root))
        included = self.markers.with_name("included")
        included.write_text(f'[core]\n\tfsmonitor = "{self.command("included")}"\n')
        self.set("include.path", str(included))
        self.set(f"includeIf.gitdir:{self.root}/.path", str(included))
        self.set("log.showSignature", "true")

    def set(self, key: str, value: str) -> None:
        git(self.root, "config", "--add", key, value)

    def hooks(self, folder: Path) -> Path:
        """Every hook there is."""
        folder.mkdir(exist_ok=True)
        for name in HOOKS.split():
            hook = folder / name
            hook.write_text(f"#!/bin/sh\ntouch {self.markers}/hook-{name}\n")
            hook.chmod(0o755)
        return folder

    @property
    def ran(self) -> list[str]:
        """What ran."""
        return sorted(path.name for path in self.markers.iterdir())


@pytest.fixture
def trap(finished: Path, tmp_path: Path) -> Trap:
    return Trap(copy_study(finished, tmp_path), tmp_path / "ran")


def test_an_auditor_s_commands_run_nothing_of_a_clone_s(trap: Trap, tmp_path: Path) -> None:
    trap.plant()
    (tmp_path / "none").mkdir()
    verified = command(trap.root, "verify", "--runs", str(tmp_path / "none"))
    assert verified.out.splitlines()[-1] == "2 proofs, 2 failures", verified.text
    assert "the run is gone" in verified.out
    assert command(trap.root, "status").code == 0
    assert command(trap.root, "show", "small").code == 0
    assert trap.ran == []
    # The plants are live: git as a user calls it runs them.
    subprocess.run(["git", "status"], cwd=trap.root, capture_output=True, check=False)
    assert trap.ran != []


@pytest.mark.parametrize("url", ["ext::sh -c touch% {markers}/ext% ", "file://{root}"])
def test_a_missing_object_is_fetched_from_no_promisor(trap: Trap, tmp_path: Path, url: str) -> None:
    git(trap.root, "repack", "-adq")
    for pack in (trap.root / ".git/objects/pack").iterdir():
        pack.chmod(0o644)
        pack.rename(trap.markers.with_name(pack.name))
    (pack,) = tmp_path.glob("pack-*.pack")
    with pack.open("rb") as stream:
        subprocess.run(["git", "unpack-objects", "-q"], cwd=trap.root, stdin=stream, check=True)
    blob = git(trap.root, "rev-parse", "HEAD:study.yaml")
    (trap.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    trap.set("core.repositoryFormatVersion", "1")
    trap.set("extensions.partialClone", "promised")
    trap.set("remote.promised.url", url.format(markers=trap.markers, root=trap.root))
    trap.set("remote.promised.promisor", "true")
    trap.set("remote.promised.uploadpack", trap.command("uploadpack"))
    trap.set("protocol.ext.allow", "always")
    trap.set("protocol.file.allow", "always")
    result = command(trap.root, "verify")
    assert result.code == 2 and "a partial clone" in result.err, result.text
    assert trap.ran == []
    subprocess.run(["git", "cat-file", "-p", blob], cwd=trap.root, capture_output=True, check=False)
    assert trap.ran != []


def test_objects_of_another_repository_are_read_as_objects_only(trap: Trap, tmp_path: Path) -> None:
    git(trap.root, "repack", "-adq")
    (trap.root / ".git/objects").rename(tmp_path / "objects")
    (trap.root / ".git/objects/info").mkdir(parents=True)
    (trap.root / ".git/objects/info/alternates").write_text(f"{tmp_path}/objects\n")
    (tmp_path / "none").mkdir()
    verified = command(trap.root, "verify", "--runs", str(tmp_path / "none"))
    assert verified.out.splitlines()[-1] == "2 proofs, 2 failures", verified.text


def test_a_graft_is_refused(trap: Trap) -> None:
    (trap.root / ".git/info/grafts").write_text(git(trap.root, "rev-parse", "HEAD") + "\n")
    result = command(trap.root, "verify")
    assert result.code == 2
    assert "shallow or grafted" in result.err


def test_a_replace_ref_shows_no_other_file(trap: Trap, tmp_path: Path) -> None:
    """The head holds a changed registration, and git would show the true one."""
    path = trap.root / "registrations/small.v1.json"
    true = git(trap.root, "rev-parse", "HEAD:registrations/small.v1.json")
    path.write_bytes(path.read_bytes().replace(b"9000", b"8000"))
    git(trap.root, "commit", "-q", "-am", "changed")
    git(trap.root, "replace", git(trap.root, "rev-parse", "HEAD:registrations/small.v1.json"), true)
    assert "9000" in git(trap.root, "show", "HEAD:registrations/small.v1.json")
    (tmp_path / "none").mkdir()
    result = command(trap.root, "verify", "--runs", str(tmp_path / "none"))
    assert result.code == 1
    assert "the registration at the study's head differs from the tagged one" in result.out
