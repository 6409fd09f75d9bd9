"""Rule files for real engines, and arms that end sooner than their design."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.canonical import canonical_bytes, load_json
from registry.draft import ENGINE, SIMULATOR, Draft, load_draft
from registry.engine_setup import setup_of
from registry.errors import DraftError, ManyErrors, StudyError, TrapError
from registry.model_folder import model_of, model_sha256
from registry.plan import make_plan, plan_key
from registry.study_settings import parse_settings

ROOT = Path(__file__).parents[2]

MINI = (ROOT / "rules/e2-mini.yaml").read_text()
E2 = (ROOT / "rules/e2.yaml").read_text()
SETTINGS = """schema: trap-study-1
name: small
remote: origin
branch: main
witnesses: [local]
signing_key: "ssh-ed25519 AAAA"
commit_runs: false
engines:
  my-cell:
    adapter: vllm
    model: models/mine
    vocabulary_tokens: 1000
    chunk_tokens: 2048
    batch_requests: 64
    command: ["${VLLM_PYTHON}", "-m", "vllm.entrypoints.openai.api_server"]
    environment: {B: "2", A: "1"}
"""


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def draft(text: str) -> Draft:
    return load_draft(text.encode(), "rules/x.yaml")


def problems(text: str) -> list[TrapError]:
    with pytest.raises(ManyErrors) as caught:
        draft(text)
    return list(caught.value.errors)


def test_a_rule_file_runs_on_the_simulator_unless_it_says_otherwise() -> None:
    assert draft(E2).runs_on == SIMULATOR and draft(MINI).runs_on == ENGINE


def test_what_it_runs_on_is_part_of_what_it_is() -> None:
    assert draft(changed(MINI, "runs_on: engine\n", "")).sha256 != draft(MINI).sha256


def test_no_real_engine_takes_a_simulator_s_policy() -> None:
    text = changed(MINI, "    NOBURST: {horizon_s: 150}", "    NOBURST: {horizon_s: 150, engine: {pin_s: 5}}")
    assert [problem.what for problem in problems(text)] == ["no real engine takes this policy"]
    assert draft(changed(text, "runs_on: engine\n", "")).design.arm("NOBURST").engine.pin_s == 5


def test_a_real_engine_s_pool_is_whole_blocks() -> None:
    text = changed(MINI, "    NOBURST: {horizon_s: 150}", "    NOBURST: {horizon_s: 150, pool_tokens: 20001}")
    assert [(problem.value, problem.remedy) for problem in problems(text)] == [(20001, "a multiple of 32")]


def test_an_arm_s_runs_end_at_its_own_horizon() -> None:
    design = draft(MINI).design
    plans = {
        name: make_plan(plan_key("", 0, "", 0), design, design.arm(name), 2.0, 1.5) for name in ("NOBURST", "RESCUE")
    }
    assert (plans["NOBURST"].horizon_us, plans["RESCUE"].horizon_us) == (150_000_000, 320_000_000)
    short, long = (plans[name].base_arrivals_us for name in ("NOBURST", "RESCUE"))
    assert short == long[: len(short)] and long[len(short)] >= 150_000_000


def test_no_arm_outlasts_its_design() -> None:
    found = problems(changed(MINI, "NOBURST: {horizon_s: 150}", "NOBURST: {horizon_s: 400}"))
    assert [(problem.what, problem.value) for problem in found] == [("an arm's runs outlast the design", 400)]


def test_a_burst_after_its_arm_s_end_is_refused() -> None:
    found = problems(changed(MINI, "spread_s: 3}\n      horizon_s: 150", "spread_s: 3}\n      horizon_s: 20"))
    assert found[0].what == "the burst starts after the run" and found[0].remedy == "less than horizon_s = 20"


def test_a_rule_reads_no_window_that_ends_after_its_arm() -> None:
    with pytest.raises(TrapError, match="unknown window in a rule"):
        draft(changed(MINI, "NOBURST: {horizon_s: 150}", "NOBURST: {horizon_s: 149}"))


def test_a_measure_reads_no_window_that_ends_after_its_arm() -> None:
    calibration = (ROOT / "rules/all-miss-vllm-cpu-mini.yaml").read_text()
    text = changed(calibration, "      caching: false\n", "      caching: false\n      horizon_s: 40\n")
    text = changed(text, "windows:\n", "windows:\n    early: {start_s: 5, end_s: 40}\n")
    text = text.replace("run.measured.", "run.early.")
    found = problems(text)
    assert [(p.what, p.remedy) for p in found] == [
        ("the window ends after the arm's runs", "a window that ends by 40 s")
    ]


def test_study_yaml_says_how_engines_are_started() -> None:
    setup = parse_settings(SETTINGS.encode()).engines["my-cell"]
    assert setup.command[0] == "${VLLM_PYTHON}" and setup.environment == (("A", "1"), ("B", "2"))
    assert setup.ready_timeout_s == 900 and setup.model_sha256 is None


def test_a_setup_is_the_same_after_it_was_frozen() -> None:
    setup = parse_settings(SETTINGS.encode()).engines["my-cell"]
    assert setup_of(load_json(canonical_bytes(setup.frozen()), "x"), "x") == setup


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    command:", "    url: http://127.0.0.1:8000\n    command:"),
        ('    command: ["${VLLM_PYTHON}", "-m", "vllm.entrypoints.openai.api_server"]\n', ""),
    ],
    ids=["both", "neither"],
)
def test_an_engine_has_a_command_or_a_url(old: str, new: str) -> None:
    with pytest.raises(DraftError, match="a command that starts it, or the url") as caught:
        parse_settings(changed(SETTINGS, old, new).encode())
    assert caught.value.where == "study.yaml, line 9, field engines.my-cell"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("adapter: vllm", "adapter: llama"),
        ("model: models/mine", "model: ../mine"),
        ("model: models/mine", "model: --trust-remote-code"),
        ("vocabulary_tokens: 1000", "vocabulary_tokens: 1"),
        ("chunk_tokens: 2048", "chunk_tokens: 0"),
        ('{B: "2", A: "1"}', '{"B=1; X": "2"}'),
        ("my-cell:", "My Cell:"),
        ("batch_requests: 64", "batch_requests: 64\n    url: file:///etc/passwd"),
        ("batch_requests: 64", "batch_request: 64"),
    ],
)
def test_a_malformed_engine_is_refused(old: str, new: str) -> None:
    with pytest.raises(TrapError):
        parse_settings(changed(SETTINGS, old, new).encode())


def test_a_model_is_told_by_its_files(tmp_path: Path) -> None:
    model = tmp_path / "models/mine"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    before = model_sha256(model)
    assert model_of(tmp_path, "models/mine") == model.resolve() and model_of(tmp_path, "Qwen/Qwen2.5-7B") is None
    (model / "config.json").write_text("{ }")
    assert model_sha256(model) != before
    (model / "config.json").write_text("{}")
    assert model_sha256(model) == before
    (model / "other.json").write_text("{}")
    assert model_sha256(model) != before


def test_a_model_s_folder_holds_no_links_and_lies_in_the_study(tmp_path: Path) -> None:
    (tmp_path / "study/models").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "study/models/link").symlink_to(tmp_path / "outside")
    with pytest.raises(StudyError, match="outside the study"):
        model_of(tmp_path / "study", "models/link")
    with pytest.raises(StudyError, match="a link"):
        model_sha256(tmp_path / "study/models")
