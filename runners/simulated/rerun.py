"""Executes simulated runs again for a verifier, as a program of its own.

`python -m runners.simulated.rerun FOLDER`: one JSON request a line on standard
input, which names the file in FOLDER that holds its registration; each run's tables
go to FOLDER/<number>/<table>.arrow, and its number to standard output when they are
written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.feather as feather

from registry.design import RunId
from registry.plan import make_plan
from registry.registration import Registration, read_registration
from runners.simulated.run import simulate


def main() -> None:
    """Serve every request on standard input, in order."""
    folder = Path(sys.argv[1])
    known: dict[str, Registration] = {}
    for line in sys.stdin:
        request = json.loads(line)
        name = request["registration"]
        if name not in known:
            known[name] = read_registration((folder / name).read_bytes(), "rerun")
        execute(known[name], request, folder / str(request["number"]))
        print(request["number"], flush=True)


def execute(registration: Registration, request: dict[str, object], folder: Path) -> None:
    """Run one request and write its tables uncompressed."""
    run = RunId(str(request["arm"]), request["rate"], int(str(request["seed"])))  # type: ignore[arg-type]
    design = registration.draft.design
    arm = design.arm(run.arm)
    plan = make_plan(bytes.fromhex(str(request["key"])), design, arm, registration.lambda_per_s(run), run.rate)
    folder.mkdir()
    for name, table in simulate(plan, arm, registration.cell_of(run)).items():
        feather.write_feather(table, str(folder / f"{name}.arrow"), compression="uncompressed")


if __name__ == "__main__":
    main()
