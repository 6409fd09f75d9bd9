"""The other side of `dynamo_mocker.py`: replay one trace in Dynamo's mocker.

Runs in the environment that holds `ai-dynamo`, which need not hold this
project: `python benchmarks/dynamo_replay.py FOLDER`. Reads `FOLDER/replay.json`
and prints what the replays took and found, as JSON.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Any

SUMMARY = ("num_requests", "completed_requests", "wall_time_ms", "first_admission_prefix_cache_reused_ratio")


def main() -> None:
    """Replay the trace a few times in one process."""
    asked = json.loads((Path(sys.argv[1]) / "replay.json").read_text())
    replay: Any = importlib.import_module("dynamo.replay.api").run_trace_replay
    rounds = []
    for _ in range(asked["rounds"]):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        summary = replay(asked["trace"], **asked["options"]).summary
        took = {"wall_s": time.perf_counter() - wall_s, "cpu_s": time.process_time() - cpu_s}
        rounds.append({**took, **{name: summary[name] for name in SUMMARY}})
    print(json.dumps({"version": importlib.metadata.version("ai-dynamo-runtime"), "rounds": rounds}))


if __name__ == "__main__":
    main()
