"""Commits of files: bytes are bytes, however git is set up and files are called."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from registry.publish import write_commit

CRLF = b"a\r\nb\n\xff\x00"


@pytest.mark.parametrize("name", ["plain", 'a "quoted" \\ name', "two\nlines", "Ünïcode", "-w"])
def test_a_file_is_committed_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with git.Repo.init(tmp_path / "study") as repository:
        (tmp_path / "study/.gitattributes").write_text("* text eol=lf\n")
        with repository.config_writer() as settings:
            settings.set_value("user", "name", "Test").set_value("user", "email", "test@localhost")
            settings.set_value("core", "autocrlf", "input")
        Path(name).write_bytes(CRLF)
        commit = write_commit(repository, None, {"on-disk": Path(name), "in-memory": CRLF, "more": Path(name)}, "files")
        tree = repository.commit(commit).tree
        assert {blob.path: blob.data_stream.read() for blob in tree.blobs} == dict.fromkeys(
            ("in-memory", "more", "on-disk"), CRLF
        )
        assert write_commit(repository, commit, {"on-disk": Path(name)}, "the same") == commit
