"""How long `trapkit verify` takes on the demo's study, re-execution included.

`make demo` first, then `python benchmarks/verify_demo.py [STUDY]`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 5


def main() -> None:
    """Print every round and the best."""
    study = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo-study")
    program = Path(sys.executable).with_name("trapkit")
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        done = subprocess.run([program.resolve(), "verify"], cwd=study, stdout=subprocess.PIPE, text=True)
        times.append(time.perf_counter() - start)
        last = done.stdout.splitlines()[-1]
    print(f"trapkit verify: best {min(times):.2f} s of {', '.join(f'{t:.2f}' for t in times)}; {last}")


if __name__ == "__main__":
    main()
