"""The ledger of a study: the same bytes everywhere, published, rotated, checked alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ledger.reading import Ledger, ledger_bytes, read_ledger
from ledger.statements import FINDING, KEY
from registry.ssh_signature import ensure_key, load_key, public_text
from tests.support import Result, command, commit_file, copy_study, git

FILES = ("ledger.json", "LEDGER.md")


@pytest.fixture(scope="module")
def written(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished study with its ledger published. Read it; never change it."""
    root = copy_study(finished, tmp_path_factory.mktemp("written"))
    for arguments in (("ledger",), ("ledger", "publish")):
        done = command(root, *arguments)
        assert done.code == 0, done.text
    return root


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    """A copy of it, free to change."""
    return copy_study(written, tmp_path)


def pages(root: Path) -> list[bytes]:
    return [(root / "evidence" / name).read_bytes() for name in FILES]


def ledger(root: Path) -> Ledger:
    return read_ledger(pages(root)[0], "ledger.json")


def clone(root: Path, name: str = "clone") -> Path:
    git(root.parent, "clone", "-q", f"{root.name}-remote.git", name)
    return root.with_name(name)


def check(root: Path, *arguments: str) -> Result:
    return command(root, "ledger", "verify", "evidence/ledger.json", *arguments)


def without_key(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setenv("TRAP_SIGNING_KEY", str(root / "no-such-key"))


def test_a_ledger_of_a_study_is_signed_and_holds(written: Path) -> None:
    found = ledger(written)
    assert [entry.kind for entry in found.log.entries] == [KEY, FINDING, FINDING]
    assert found.log.tags() == ["reg/all-miss-small/v1", "reg/small/v1"]
    key = found.signer
    assert key and key in (written / "study.yaml").read_text()
    page = (written / "evidence/LEDGER.md").read_text()
    assert f"Signed by `{key}`" in page and "3 entries in `trapkit-ledger/study`" in page
    done = check(written, "--key", key)
    assert done.code == 0 and done.out.endswith("HOLDS\n") and "the key that you gave" in done.out
    assert "compare it with one that you know" in check(written).out


def test_it_is_the_same_again_and_on_another_clone_without_the_key(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = pages(root)
    assert command(root, "ledger").code == 0 and pages(root) == before
    other = clone(root)
    (other / "evidence/ledger.json").unlink()
    without_key(monkeypatch, root)
    assert command(other, "ledger").code == 0 and pages(other) == before
    assert git(other, "status", "--porcelain") == ""


def test_two_clones_build_the_first_one_alike(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copy_study(finished, tmp_path)
    other = clone(root)
    for each in (root, other):
        assert command(each, "ledger").code == 0
    assert pages(root) == pages(other)
    shutil.rmtree(other / "evidence")
    git(other, "checkout", "-q", "--", "evidence")
    without_key(monkeypatch, root)
    unsigned = command(other, "ledger")
    assert unsigned.code == 0 and "unsigned" in unsigned.out and "next:" not in unsigned.out
    assert "**Unsigned**" in (other / "evidence/LEDGER.md").read_text()
    done = check(other)
    assert done.code == 3 and done.out.splitlines()[-1].startswith("UNSIGNED")


def test_what_is_new_is_unsigned_without_the_key_and_signed_with_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ledger(root)
    table = next(root.glob("runs/small.v1/*/*/*/attempt-1/turns.parquet"))
    table.unlink()
    with monkeypatch.context() as patch:
        without_key(patch, root)
        done = command(root, "ledger")
    assert done.code == 1 and "log: 4 entries, unsigned" in done.out
    after = ledger(root)
    assert after.signer is None and after.log.entries[3].signer is None
    assert [e.envelope for e in after.log.entries[:3]] == [e.envelope for e in before.log.entries]
    assert command(root, "ledger").code == 1
    signed = ledger(root)
    assert signed.signer == before.signer and len(signed.log) == 4
    assert "findings not signed when they were logged: 1" in check(root).out
    git(root, "checkout", "-q", "--", "runs")
    assert command(root, "ledger").code == 0 and len(ledger(root).log) == 5


@pytest.mark.parametrize("change", [b"x", b'{"schema": "trap-ledger-2"}'])
def test_a_broken_ledger_is_refused_and_stays_as_it_is(root: Path, change: bytes) -> None:
    path = root / "evidence/ledger.json"
    path.write_bytes(change)
    done = command(root, "ledger")
    assert done.code == 2 and "does not hold" in done.err and "git checkout ledger/v1 -- evidence" in done.err
    assert path.read_bytes() == change
    assert command(root, "ledger", "publish").code == 2
    git(root, "checkout", "-q", "ledger/v1", "--", "evidence")
    assert command(root, "ledger").code == 0


def test_a_ledger_that_forgets_what_was_published_is_refused(root: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    fresh = copy_study(finished, tmp_path / "fresh")
    commit_file(fresh, "study.yaml", (fresh / "study.yaml").read_text() + "# another\n")
    with pytest.MonkeyPatch.context() as patch:
        without_key(patch, fresh)
        command(fresh, "ledger")
    shutil.copy(fresh / "evidence/ledger.json", root / "evidence/ledger.json")
    done = command(root, "ledger")
    assert done.code == 2 and "lost entries" in done.err and "ledger/v1" in done.err


def test_a_ledger_of_the_older_form_gets_a_log(finished: Path, tmp_path: Path) -> None:
    root = copy_study(finished, tmp_path)
    assert "no ledger with a log" in command(root, "ledger", "publish").err
    commit_file(root, "evidence/ledger.json", '{\n "schema": "trap-ledger-1"\n}\n')
    assert "no ledger with a log" in command(root, "ledger", "publish").err
    assert command(root, "ledger").code == 0 and len(ledger(root).log) == 3


def test_publishing_pushes_one_tag_that_the_witness_saw_and_changes_no_ledger(root: Path) -> None:
    assert git(root, "tag", "--list", "ledger/*") == "ledger/v1"
    assert git(root.parent, f"--git-dir={root.name}-remote.git", "tag", "--list", "ledger/*") == "ledger/v1"
    assert git(root, "show", "ledger/v1:evidence/ledger.json") + "\n" == pages(root)[0].decode()
    rows = [json.loads(line) for line in (root / "evidence/witness/local/push-log.jsonl").read_text().splitlines()]
    (row,) = [row for row in rows if row["ref"] == "refs/tags/ledger/v1"]
    assert "beacon" not in row and row["after"] == git(root, "rev-parse", "ledger/v1")
    before = pages(root)
    again = command(root, "ledger", "publish")
    assert again.code == 0 and "published already: ledger/v1" in again.out
    assert command(root, "ledger").code == 0 and pages(root) == before
    assert git(root, "status", "--porcelain") == ""
    assert command(root, "verify").code == 0


def test_published_ledgers_are_listed_with_who_saw_them(root: Path, tmp_path: Path) -> None:
    assert command(root, "ledger", "rotate", str(tmp_path / "new-key")).code == 0
    early = command(root, "ledger", "publish")
    assert early.code == 2 and "the page is not this ledger's" in early.err
    assert command(root, "ledger").code == command(root, "ledger", "publish").code == 0
    done = command(clone(root), "ledger", "published")
    assert done.code == 0, done.out
    first, second = done.out.index("ledger/v1: 3 entries"), done.out.index("ledger/v2: 4 entries")
    assert first < second and done.out.count("by the local witness (the author's word") == 2
    git(root, "tag", "-f", "-a", "-m", "moved", "ledger/v1", "HEAD")
    git(root, "tag", "-d", "ledger/v2")
    moved = command(root, "ledger", "published")
    assert moved.code == 1
    assert "a witness saw it moved or deleted" in moved.out and "it is not in the repository" in moved.out


def test_nothing_published_is_nothing_proven(finished: Path) -> None:
    done = command(finished, "ledger", "published")
    assert done.code == 3 and "no ledger is published here" in done.out


def test_what_another_clone_published_comes_first(root: Path, tmp_path: Path) -> None:
    other = clone(root)
    key = tmp_path / "new-key"
    assert command(root, "ledger", "rotate", str(key)).code == 0
    assert command(root, "ledger").code == command(root, "ledger", "publish").code == 0
    git(other, "tag", "-d", "ledger/v1")
    done = command(other, "ledger", "publish")
    assert done.code == 2 and "this clone lacks" in done.err and "ledger/v2" in done.err


def test_rotation_and_revocation(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ledger(root).signer
    earlier = tmp_path / "earlier.json"
    shutil.copy(root / "evidence/ledger.json", earlier)
    key = tmp_path / "ledger-key"
    done = command(root, "ledger", "rotate", str(key))
    assert done.code == 0 and f"TRAP_LEDGER_KEY={key}" in done.out
    assert ledger(root).signer == public_text(load_key(key)) != first
    assert first
    assert command(root, "ledger", "revoke", first).code == 2
    before = pages(root)
    assert command(root, "ledger").code == 0 and pages(root) == before
    monkeypatch.setenv("TRAP_LEDGER_KEY", str(key))
    assert command(root, "ledger", "revoke", public_text(load_key(key))).code == 2
    done = command(root, "ledger", "revoke", first + " a comment", "--from-entry", "2")
    assert done.code == 0, done.text
    assert command(root, "ledger").code == 0
    assert command(root, "ledger", "publish").code == 0
    done = check(root, "--key", first, "--since", str(earlier))
    assert done.code == 0, done.out
    assert "revoked: its signatures count no more from entry 2" in done.out
    assert "findings signed by a key that was revoked for them: entries 2" in done.out
    assert "grew from its first 3 entries" in done.out
    assert command(root, "verify").code == 0


def test_a_key_rotates_only_by_its_holder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_key(tmp_path / "mine")
    monkeypatch.setenv("TRAP_LEDGER_KEY", str(tmp_path / "mine"))
    done = command(root, "ledger", "rotate", str(tmp_path / "new"))
    assert done.code == 2 and "is not the ledger's" in done.err


@pytest.mark.parametrize("arguments", [("rotate", "key"), ("revoke", "ssh-ed25519 AAAA")])
def test_there_is_no_key_to_change_without_a_signed_ledger(
    finished: Path, tmp_path: Path, arguments: tuple[str, str]
) -> None:
    root = copy_study(finished, tmp_path)
    done = command(root, "ledger", *arguments)
    assert done.code == 2 and "there is no ledger" in done.err and not (root / "key").exists()


def test_a_checkpoint_alone_serves_as_the_earlier_one(root: Path, tmp_path: Path) -> None:
    note = tmp_path / "checkpoint"
    note.write_text(ledger(root).value["log"]["checkpoint"])
    assert check(root, "--since", str(note)).code == 0
    note.write_text(note.read_text().replace("\n3\n", "\n2\n"))
    done = check(root, "--since", str(note))
    assert done.code == 1 and done.out.endswith("REFUSED\n")
    note.write_text("no checkpoint")
    assert check(root, "--since", str(note)).code == 1
    assert check(root, "--since", str(tmp_path / "nothing")).code == 2


def test_a_proof_of_one_finding_is_accepted_alone(written: Path, tmp_path: Path) -> None:
    done = command(written, "ledger", "prove", "reg/small/v1")
    proof = tmp_path / "proof.json"
    proof.write_text(done.out)
    found = command(tmp_path, "ledger", "verify", "proof.json")
    assert found.code == 0 and "finding about reg/small/v1: PASS" in found.out
    assert command(tmp_path, "ledger", "verify", "proof.json", "--since", "proof.json").code == 2
    proof.write_text(done.out.replace('"index": 2', '"index": 1'))
    refused = command(tmp_path, "ledger", "verify", "proof.json")
    assert refused.code == 1 and refused.out.endswith("REFUSED\n")
    assert command(written, "ledger", "prove", "reg/none/v1").code == 2
    file = ("--file", str(written / "evidence/ledger.json"))
    assert command(tmp_path, "ledger", "prove", "reg/small/v1", *file).out == done.out


def test_another_key_or_a_flipped_bit_is_refused_and_no_file_is_bad_input(root: Path, tmp_path: Path) -> None:
    other = public_text(ensure_key(tmp_path / "other")[0])
    done = check(root, "--key", other)
    assert done.code == 1 and "another key than the one given" in done.out
    assert check(root, "--key", "ssh-rsa AAAA").code == 2
    path = root / "evidence/ledger.json"
    path.write_bytes(path.read_bytes().replace(b"PASS", b"PASs", 1))
    done = check(root)
    assert done.code == 1 and "it does not hold" in done.out and done.out.endswith("REFUSED\n")
    for missing in (root / "evidence/none.json", root / "evidence"):
        assert command(root, "ledger", "verify", str(missing)).code == 2


def test_an_auditor_states_what_was_found(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_key(tmp_path / "auditor")
    with monkeypatch.context() as patch:
        patch.setenv("TRAP_SIGNING_KEY", str(tmp_path / "auditor"))
        done = command(written, "verify", "--statement", str(tmp_path / "audit.json"))
    assert done.code == 0 and "signed by SHA256:" in done.err
    found = command(tmp_path, "ledger", "verify", "audit.json")
    assert found.code == 0, found.out
    assert "2 proofs, 0 failures; exit code 0" in found.out and "no witness was asked" in found.out
    assert "the study's own" not in found.out
    own = command(written, "verify", "--statement", str(tmp_path / "own.json"))
    assert own.code == 0
    assert "this is the author's word" in command(tmp_path, "ledger", "verify", "own.json").out
    without_key(monkeypatch, tmp_path)
    assert "unsigned" in command(written, "verify", "--statement", str(tmp_path / "none.json")).err
    assert command(tmp_path, "ledger", "verify", "none.json").code == 3


def test_the_written_form_is_the_only_one(written: Path) -> None:
    assert ledger_bytes(json.loads(pages(written)[0])) == pages(written)[0]
