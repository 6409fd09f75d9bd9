"""A workload from a trace: registered, run, proven from the frozen scripts alone, not forged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.render.rehearsal import rehearsal_text
from cli.workflows.rehearse import Rehearsal, on_literal_seeds
from modelf.fluid import fluid_orbit
from modelf.fluid_inputs import Scenario, SessionArrivals
from registry.bundle import bundled
from registry.design import RunId
from registry.errors import ManyErrors, TrapError
from registry.registration import Registration, read_registration
from registry.session_scripts import SessionScripts
from tests.made_traces import rule_of, write_trace
from tests.support import SMALL_RULE, Result, command, commit_file, copy_study, empty_study, git
from verifier.predictors import evaluate

FLUID = """predictors:
  - name: fluid
    kind: model-f-fluid
    predictor_version: 1
    costs: fitted
    all_miss_from_s: 1
    sessions_present: 2
    source: model F on the replayed sessions
    arm: BURST
    rate: 1.35
    window: judged
    reading: mean_prompt_tokens
    relative_tolerance: 10
"""


def replayed_rule(trace: Path) -> str:
    rule = rule_of(trace, arrivals="replayed").replace("id: small\n", "id: again\n").replace("[0, 1]", "[0]")
    return rule[: rule.index("predictors:")] + FLUID + rule[rule.index("blindness:") :]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    root, trace = empty_study(folder), write_trace(folder)
    commit_file(root, "rules/small.yaml", rule_of(trace))
    commit_file(root, "rules/again.yaml", replayed_rule(trace))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        patch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (4, 1000))
        assert (done := command(root, "register", "rules/small.yaml")).code == 0, done.text
        patch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (1, 1000))
        done = command(root, "register", "rules/again.yaml")
        assert done.code == 0, done.text
        (root / "told").write_text(done.out)
        # Everything from here on needs the scripts, never the trace.
        trace.unlink()
        for identity in ("small", "again"):
            done = command(root, "run", identity)
            assert done.code == 0, done.text
    return root


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Path:
    return copy_study(finished, tmp_path)


def frozen(root: Path, identity: str = "small") -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / f"registrations/{identity}.v1.json").read_text())
    return value


def test_it_is_proven_without_the_trace(study: Path) -> None:
    facts = frozen(study)["session_scripts"]
    assert (facts["sessions"], facts["sessions_read"], facts["block_tokens"]) == (10, 12, 16)
    assert git(study, "ls-tree", "-r", "--name-only", "reg/small/v1^{commit}", "workloads").split() == [
        f"workloads/{facts['sha256']}.json"
    ]
    result = command(study, "verify")
    assert result.code == 0, result.text
    assert result.out.splitlines()[-1] == "4 proofs, 0 failures"


def test_its_crate_and_its_ledger_have_the_scripts_and_the_pictures(study: Path) -> None:
    name = f"workloads/{frozen(study)['session_scripts']['sha256']}.json"
    done = command(study, "crate", "small", "--out", "crate")
    assert done.code == 0 and (study / "crate" / name).read_bytes() == (study / name).read_bytes(), done.text
    done = command(study, "ledger")
    assert done.code == 0 and "<figure" in (study / "evidence/index.html").read_text(), done.text
    assert command(study, "tables").code == 0


def test_an_auditors_clone_is_proven(study: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(study.with_name("study-remote.git")), "clone")
    shutil.copytree(study / "runs", tmp_path / "clone" / "runs", dirs_exist_ok=True)
    result = command(tmp_path / "clone", "verify")
    assert result.code == 0, result.text


def test_runs_and_rules_see_the_scripts(study: Path) -> None:
    result = json.loads(command(study, "verify", "--json").out)
    runs = {run["arm"]: run for run in result["proofs"][-1]["runs"]}
    reading = runs["NOBURST"]["readings"]["judged"]
    # First turns hit what other sessions left: reuse is above that of follow-ups alone.
    assert 0.5 < reading["followup_hit_fraction"] <= 1.0 and reading["reuse_fraction"] > 0.5
    shown = command(study, "show", "small").out
    assert f"10 of 12 sessions, {frozen(study)['session_scripts']['turns']} turns; 0 were too large" in shown


def replayed_registration(root: Path) -> Registration:
    scripts = root / f"workloads/{frozen(root, 'again')['session_scripts']['sha256']}.json"
    data = bundled((root / "registrations/again.v1.json").read_bytes(), scripts.read_bytes())
    return read_registration(data, "again")


def scripts_in(registration: Registration) -> SessionScripts:
    assert registration.draft.session_scripts is not None
    return registration.draft.session_scripts.scripts


def test_replayed_sessions_arrive_in_the_traces_order_and_spacing(study: Path) -> None:
    scripts = scripts_in(replayed_registration(study))
    clock_us = scripts.arrival_us[scripts.arrival_order]
    end_s = 9 / (1.35 * frozen(study, "again")["calibration"]["lambda_ref_per_s"])
    for arm in ("BURST", "NOBURST", "CAPPED"):
        sessions = pd.read_parquet(study / f"runs/again.v1/{arm}/1.35/0/attempt-1/sessions.parquet")
        base = sessions[sessions.origin == "base"]
        assert base.planned_turns.tolist() == scripts.turns[scripts.arrival_order].tolist()
        np.testing.assert_allclose(base.arrival_s, (clock_us - clock_us[0]) / np.ptp(clock_us) * end_s, atol=1e-6)
        assert len(sessions) == 10 + (0 if arm == "NOBURST" else 12)


def test_model_f_is_driven_by_the_replayed_sessions(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registration = on_literal_seeds(replayed_registration(study), (0,), ["fluid"])
    scripts, seen = scripts_in(registration), []

    def orbit(law: Any, costs: Any, scenario: Scenario, *more: Any) -> Any:
        seen.append(scenario.arrivals)
        return fluid_orbit(law, costs, scenario, *more)

    monkeypatch.setattr("verifier.predictors.fluid_orbit", orbit)
    (value,) = evaluate(registration, None, lambda _: {}).values()
    (arrivals,) = seen
    assert isinstance(arrivals, SessionArrivals) and value > 0 and len(arrivals.turns) == 22
    base_us = registration.plan(RunId("NOBURST", 1.35, 0), None).base_arrivals_us
    expected = set(zip(base_us, scripts.turns[scripts.arrival_order].tolist(), strict=True))
    assert len(expected) == 10 and expected <= set(zip(arrivals.arrival_us, arrivals.turns, strict=True))


def test_a_replay_says_its_own_rate_and_where_it_ends(study: Path) -> None:
    reference = frozen(study, "again")["calibration"]["lambda_ref_per_s"]
    own = 9 / (np.ptp(scripts_in(replayed_registration(study)).arrival_us) / 1e6)
    words = (
        f"{own:.6g} sessions/s, or {own / reference:.6g} lambda_ref",
        f"at 1.35 the trace ends before the run: after {9 / (1.35 * reference):,.0f} s no base session arrives "
        "(BURST, CAPPED, NOBURST)",
    )
    rehearsed = rehearsal_text(Rehearsal(replayed_registration(study), (0,), {}, {}, {1.35: 0.0}), [])
    for text in ((study / "told").read_text(), command(study, "show", "again").out, rehearsed):
        assert all(word in text for word in words), text
    assert "replay" not in command(study, "show", "small").out


def tagged_with(root: Path, files: dict[str, bytes | None]) -> Result:
    """Verify after the tag was made to name a commit with other files."""
    tree = git(root, "rev-parse", "reg/small/v1^{commit}")
    git(root, "checkout", "-q", "--detach", tree)
    for path, data in files.items():
        if data is None:
            git(root, "rm", "-q", path)
        else:
            (root / path).write_bytes(data)
            git(root, "add", path)
    git(root, "commit", "-q", "--amend", "--no-edit")
    payload = git(root, "cat-file", "tag", "reg/small/v1").replace(tree, git(root, "rev-parse", "HEAD")).encode()
    (root / "moved").write_bytes(payload + b"\n")
    oid = git(root, "hash-object", "-t", "tag", "-w", "moved")
    git(root, "checkout", "-q", "main")
    git(root, "update-ref", "refs/tags/reg/small/v1", oid)
    return command(root, "verify")


def test_missing_scripts_are_told(study: Path) -> None:
    result = tagged_with(study, {f"workloads/{frozen(study)['session_scripts']['sha256']}.json": None})
    assert result.code != 0
    assert "the session scripts that the registration names are not there" in result.out


def test_other_scripts_are_refuted(study: Path) -> None:
    path = f"workloads/{frozen(study)['session_scripts']['sha256']}.json"
    longer = (study / path).read_bytes().replace(b'"turns":[[', b'"turns":[[1', 1)
    result = tagged_with(study, {path: longer})
    assert result.code == 1
    assert "the session scripts are not those that the registration names" in result.out


def told(tmp_path: Path, rule: str) -> str:
    from cli.workflows.explore import load_rule_file

    (tmp_path / "rules").mkdir(exist_ok=True)
    (tmp_path / "rules/small.yaml").write_text(rule)
    with pytest.raises(TrapError) as caught:
        load_rule_file(tmp_path / "rules/small.yaml")
    errors = caught.value.errors if isinstance(caught.value, ManyErrors) else [caught.value]
    return "\n".join(error.diagnostics() for error in errors)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"arrivals": "replayed", "sample": {"sessions": 1}}, "one session alone has no rate"),
        ({"arrivals": "backwards"}, "not one of the allowed values"),
        ({"sha256": "0" * 64}, "not the one that the rule file names"),
        ({"file": "nowhere.jsonl"}, "no such trace"),
        ({"sample": {"sessions": 13}}, "13 sessions cannot be taken"),
        ({"sample": {"sessions": 12}, "max_prompt_tokens": 2000}, "12 sessions cannot be taken"),
        ({"token_scale": 7}, "do not divide"),
        ({"token_scale": 0}, "the number is too small"),
        ({"speed": 1}, "unknown field speed"),
        ({"format": "csv"}, "not one of the allowed values"),
    ],
)
def test_a_trace_that_cannot_be(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    assert words in told(tmp_path, rule_of(write_trace(tmp_path), **fields))


def test_a_trace_without_arrival_times_is_not_replayed(tmp_path: Path) -> None:
    trace = tmp_path / "at-once.jsonl"
    trace.write_text('{"timestamp": 5, "input_length": 9, "output_length": 1, "hash_ids": [7]}\n' * 12)
    assert "all sessions of the trace that are taken arrive at once" in told(
        tmp_path, rule_of(trace, arrivals="replayed")
    )
    (tmp_path / "weka").mkdir()
    for number in range(12):
        session = {"requests": [{"t": number, "in": 9, "out": 1, "hash_ids": [7]}], "block_size": 64}
        (tmp_path / f"weka/{number}.json").write_text(json.dumps(session))
    assert "no clock in common" in told(tmp_path, rule_of(tmp_path / "weka", arrivals="replayed"))


def test_what_goes_with_no_trace(tmp_path: Path) -> None:
    rule = rule_of(write_trace(tmp_path))
    policy = rule.replace("    NOBURST: {}\n", "    NOBURST: {engine: {pin_s: 5}}\n")
    assert "none is pinned" in told(tmp_path, policy)
    both = rule.replace('{"trace"', '{"output_tokens": 5, "trace"')
    assert "too much is given here" in told(tmp_path, both)
    neither = SMALL_RULE.replace("    mean_tool_s: 5\n", "")
    assert "the field mean_tool_s is missing" in told(tmp_path, neither)
    assert "unknown cell" in told(tmp_path, rule.replace("cell: sglang-300k", "cell: none-such"))
    small = rule.replace("    NOBURST: {}\n", "    NOBURST: {pool_tokens: 2000}\n")
    assert "too small for one turn" in told(tmp_path, small)
