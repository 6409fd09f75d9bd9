"""The GitHub workflow in which a study verifies itself, in public."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from registry.errors import StudyError

FILE = ".github/workflows/verify.yml"

_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.\[\]@ :/+=~<>!,&#-]{0,300}")

_TEXT = """# Verifies this study anew: verdicts from raw records, push times from GitHub's own log.
# It proves nothing that a reader could not: run the same commands in a clone of your own.
name: verify

on:
  push:
  workflow_dispatch:
  schedule:
    - cron: "17 4 * * 1"

permissions:
  contents: read

jobs:
  verify:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      # The whole history: a shallow clone proves nothing, and is refused.
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install
        run: python -m pip install "REQUIREMENT"
      - name: Verify
        env:
          GITHUB_TOKEN: ${{ github.token }}
        run: |
          trapkit verify --online | tee verification.txt
          exit "${PIPESTATUS[0]}"
      - name: The ledger alone
        if: ${{ !cancelled() && hashFiles('evidence/ledger.json') != '' }}
        run: trapkit ledger verify evidence/ledger.json
      - uses: actions/upload-artifact@v4
        if: ${{ !cancelled() }}
        with:
          name: verification
          path: verification.txt
"""


def workflow_text(requirement: str | None = None) -> str:
    """The workflow's YAML; `requirement` is what pip installs, by default this
    very version. StudyError for one that is no requirement.
    """
    wanted = requirement or f"trapkit=={version('trapkit')}"
    if not _REQUIREMENT.fullmatch(wanted):
        raise StudyError("not a requirement for pip", value=wanted, remedy="trapkit==0.1.0, or trapkit @ git+https://…")
    return _TEXT.replace("REQUIREMENT", wanted)


def write_workflow(root: Path, requirement: str | None = None) -> tuple[Path, bool]:
    """Write the workflow into a study; its file, and whether it was written now.

    StudyError where another file stands in its place.
    """
    text, file = workflow_text(requirement), root / FILE
    if file.exists():
        if file.read_text("utf-8") != text:
            raise StudyError("there is another workflow already", where=FILE, remedy="remove it, or keep it as it is")
        return file, False
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file, True
