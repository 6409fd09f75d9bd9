"""How fast traces are read, and in how much memory.

`python benchmarks/traces.py TRACE... [--large MIB] [--json]`. Each trace is read
and described by a process of its own: MB/s of its files, peak memory of that
process, and what an idle one of the kind takes. `--large` first writes a
Mooncake trace of that size, whose blocks are new half of the time.
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

ROOT = Path(__file__).resolve().parent.parent


def measure(path: Path | None) -> dict[str, object]:
    """What this very process takes to read the trace; nothing, without one."""
    from registry.traces.description import describe
    from registry.traces.formats import read_trace

    size, found, start = 0, None, time.perf_counter()
    if path is not None:
        size = sum(f.stat().st_size for f in (path.iterdir() if path.is_dir() else [path]))
        found = describe(read_trace(path))
    took_s = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "mb": size / 1e6,
        "turns": found.turns if found else 0,
        "infinite_cache_hit_fraction": found.infinite_cache_hit_fraction if found else None,
        "mb_per_s": size / 1e6 / took_s if found else None,
        "peak_mib": peak,
    }


def write_large(file: Path, mib: int) -> None:
    """A Mooncake trace: sessions of eight turns, each turn 40 blocks longer."""
    block = 1
    with file.open("w") as stream:
        number = 0
        while stream.tell() < mib * 2**20:
            ids = [0]
            for turn in range(8):
                ids += range(block, block + 40)
                block += 40
                line = {"timestamp": number, "input_length": 512 * len(ids), "output_length": 9, "hash_ids": ids}
                stream.write(json.dumps(line) + "\n")
                number += 1 + turn


def child(path: Path | None) -> dict[str, object]:
    """The measurement by a process of its own."""
    arguments = [sys.executable, __file__, "--child", *([str(path)] if path else [])]
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    value: dict[str, object] = json.loads(done.stdout)
    return value


def main() -> None:
    """Print a line a trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--large", type=int, metavar="MIB")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(measure(asked.traces[0] if asked.traces else None)))
        return
    with tempfile.TemporaryDirectory() as folder:
        traces = list(asked.traces)
        if asked.large:
            traces.append(Path(folder) / "large.jsonl")
            write_large(traces[-1], asked.large)
        found = {"nothing": child(None), **{path.name: child(path) for path in traces}}
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        rate = f"{value['mb_per_s']:.0f} MB/s" if value["mb_per_s"] else ""
        print(f"{name:38} {value['mb']:10.1f} MB {value['turns']:9} turns {rate:>10} {value['peak_mib']:7.0f} MiB peak")


if __name__ == "__main__":
    main()
