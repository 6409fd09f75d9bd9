"""How long `trapkit run e2` takes: 18 runs of 8700 s, predicted, recorded, pushed.

`python benchmarks/run_e2.py [--rounds 3] [--json]`. Each round makes a study of
its own in a temporary folder, registers e2 (which runs its calibration) and
draws it; only `trapkit run e2` is timed, in wall seconds, with the CPU seconds
of the processes that ended with it. Machine code is kept from the registration.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WANTED_S = 5.0


def one_round(folder: Path) -> dict[str, float]:
    """Time one `trapkit run e2` in a new study."""
    program = str(Path(sys.executable).with_name("trapkit").resolve())
    study = folder / "study"
    environment = os.environ | {"TRAP_SIGNING_KEY": str(folder / "signing-key")}

    def trapkit(*arguments: str, cwd: Path = study) -> None:
        command = [program, *arguments]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)

    trapkit("init", str(study), "--local-remote", "--commit-runs", cwd=folder)
    trapkit("register", "rules/e2.yaml")
    trapkit("draw", "e2")
    before, start = _children_s(), time.perf_counter()
    trapkit("run", "e2")
    return {"wall_s": time.perf_counter() - start, "cpu_s": _children_s() - before}


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print every round and the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rounds = []
    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(one_round(Path(folder)))
    best = min(rounds, key=lambda took: took["wall_s"])
    if asked.json:
        print(json.dumps({"run_e2_s": best["wall_s"], "load_1m": os.getloadavg()[0], "rounds": rounds}, indent=2))
        return
    each = ", ".join(f"{took['wall_s']:.2f} s ({took['cpu_s']:.2f} s of CPU)" for took in rounds)
    print(f"trapkit run e2, 18 runs: best {best['wall_s']:.2f} s of {each}")
    print(f"at most {WANTED_S:g} s is wanted")


if __name__ == "__main__":
    main()
