"""The auditor's policy: read strictly, laid over what is built in, never the study's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from registry.errors import TrapError
from registry.study_settings import BeaconChoice, parse_settings, settings_text
from registry.witness.policy import QUICKNET
from registry.witness.policy_file import built_in, load_policy
from registry.witness.timestamp_roots import built_in_roots
from tests.support import command

KEY = "ssh-ed25519 " + "A" * 68
SETTINGS = f"""schema: trap-study-1
name: s
remote: origin
branch: main
witnesses: [github, timestamps]
github: {{repository: "octo/study", repository_id: 7}}
timestamp_authorities: ["http://tsa.example.org"]
signing_key: "{KEY}"
commit_runs: false
"""


def policy(folder: Path, text: str) -> Path:
    path = folder / "policy.yaml"
    path.write_text(f"schema: trap-policy-1\n{text}")
    return path


def test_without_a_file_what_is_built_in_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAP_POLICY", raising=False)
    found = load_policy()
    assert found == built_in() and found.drand_chains == (QUICKNET,)
    assert found.timestamp_roots == built_in_roots() and len(built_in_roots()) == 3


def test_a_file_adds_to_it_or_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "root.pem").write_text(built_in_roots()[0])
    text = f'github_apis: ["https://github.example.org/api/v3"]\nsigning_keys: ["{KEY}"]\ntimestamp_roots: [root.pem]\n'
    found = load_policy(policy(tmp_path, text))
    assert found.github_apis == ("https://api.github.com", "https://github.example.org/api/v3")
    assert found.signing_keys == (KEY,) and set(found.timestamp_roots) == set(built_in_roots())
    alone = load_policy(policy(tmp_path, "built_in: false\n"))
    assert alone.github_apis == alone.drand_chains == alone.timestamp_roots == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("github_apis: [file:///etc]\n", "github_apis"),
        ("timestamp_roots: [missing.pem]\n", "cannot be read"),
        ("timestamp_roots: ['-----BEGIN CERTIFICATE----- nothing']\n", "not a PEM certificate"),
        ("github_trusted_root: missing.jsonl\n", "cannot be read"),
        ("witness_servers: [{url: 'https://w.example.org'}]\n", "key"),
        ("drand_chains: [{chain_hash: abc}]\n", "chain_hash"),
        ("run_clock_allowance_s: -1\n", "at least 0"),
        ("trusts_everybody: true\n", "trusts_everybody"),
        ("built_in: true\nbuilt_in: false\n", "twice"),
    ],
)
def test_a_malformed_policy_is_refused_with_its_field(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TrapError) as raised:
        load_policy(policy(tmp_path, text))
    assert words in raised.value.diagnostics()


def test_a_policy_inside_the_study_is_no_auditor_s(tmp_path: Path) -> None:
    inside = policy(tmp_path, "built_in: true\n")
    with pytest.raises(TrapError, match="inside the study"):
        load_policy(inside, study=tmp_path)
    with pytest.raises(TrapError, match="cannot be read"):
        load_policy(tmp_path / "none.yaml")


def test_it_can_be_shown(tmp_path: Path) -> None:
    path = policy(tmp_path, f'witness_servers: [{{key: "{KEY}", url: "https://w.example.org"}}]\n')
    shown = command(tmp_path, "policy", "show", "--policy", str(path))
    assert shown.code == 0 and KEY in shown.out and "DigiCert Trusted Root G4" in shown.out
    value = json.loads(command(tmp_path, "policy", "show", "--policy", str(path), "--json").out)
    assert value["witness_servers"] == [{"key": KEY, "url": "https://w.example.org"}]


def test_settings_of_a_study_are_written_as_they_are_read() -> None:
    found = parse_settings(SETTINGS.encode())
    assert found.beacon == BeaconChoice("quicknet") and found.github is not None
    assert parse_settings(settings_text(found).encode()) == found


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("witnesses: [github, timestamps]", "witnesses: [github, server, timestamps]", "needs the section server"),
        ('timestamp_authorities: ["http://tsa.example.org"]\n', "", "needs the section timestamp_authorities"),
        ("signing_key", "beacon: {chain: local}\nsigning_key", "not among the witnesses"),
        ("signing_key", "beacon: {chain: mine}\nsigning_key", "beacon"),
        ('"octo/study"', '"../study"', "github.repository"),
        ("repository_id: 7", "repository_id: 7, api: 'javascript:x'", "github.api"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(TrapError) as raised:
        parse_settings(SETTINGS.replace(old, new, 1).encode())
    assert words in raised.value.diagnostics()


def test_init_for_each_kind_of_remote(tmp_path: Path) -> None:
    for wrong in (("--server", "http://127.0.0.1:1"), ("--github-api", "https://x.example.org"),
                  ("--local-remote", "--github", "o/n")):  # fmt: skip
        done = command(tmp_path, "init", "study", *wrong)
        assert done.code == 2 and "to do:" in done.err and not (tmp_path / "study").exists()
