"""Sessions of a trace on an engine, here a stub of one: registered, run, proven without the trace."""

from __future__ import annotations

import json
from pathlib import Path

from registry.traces.digests import trace_sha256
from tests.study.engines import CALIBRATION, RULE, WORKLOAD, engine_section, engine_study, register
from tests.study.test_trace_study import write_trace
from tests.support import command


def test_a_trace_is_calibrated_run_and_proven(tmp_path: Path) -> None:
    trace = write_trace(tmp_path)
    fields = {"file": str(trace), "sha256": trace_sha256(trace), "sample": {"sessions": 12}, "token_scale": 32}
    workload = f"\n  workload: {json.dumps({'trace': {**fields, 'time_scale': 300}})}\n"
    rules = [text.replace("beacon", "literal").replace(WORKLOAD, workload) for text in (CALIBRATION, RULE)]
    root = engine_study(tmp_path, engine_section(), *rules)
    for name in ("all-miss-stub", "tested"):
        register(root, name)
        if name == "tested":
            trace.unlink()
        trace.unlink(missing_ok=name == "tested") if name == "tested" else None
        assert (done := command(root, "run", name)).code == 0, done.text
    result = command(root, "verify", "--json")
    assert result.code == 0, result.text
    proofs = json.loads(result.out)["proofs"]
    assert len(proofs) == 2
    text = json.dumps(proofs[-1])
    assert "tokens conserved" in text and "the engine's counters agree with" in text
    assert proofs[-1]["runs"][0]["readings"]["judged"]["turns_per_s"] > 0
