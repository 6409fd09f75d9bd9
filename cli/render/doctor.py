"""The doctor's report: a line a check, what to do below it, or JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

from cli.workflows.doctor import MISSING, Finding
from registry.plain_text import plain

_WIDTH = 110


def doctor_json(findings: Sequence[Finding]) -> str:
    """A list of findings with every field."""
    return json.dumps([asdict(finding) for finding in findings], indent=1)


def doctor_text(findings: Sequence[Finding]) -> str:
    """What the core needs first, then the rest, then one sentence."""
    core = [finding for finding in findings if finding.core]
    rest = [finding for finding in findings if not finding.core]
    lines = ["What the core needs", *_lines(core), "", "What some things need", *_lines(rest), "", _summary(core)]
    return "\n".join(lines)


def _lines(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        said = f"{finding.status:<9}  {plain(finding.name, 60):<16}  {plain(finding.detail, 400)} ({finding.purpose})"
        lines += _wrapped(said, "  ")
        if finding.remedy is not None and finding.status != "ok":
            lines += _wrapped(f"to do: {plain(finding.remedy, 300)}", " " * 31)
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=" " * 31, break_on_hyphens=False, drop_whitespace=True
    )


def _summary(core: Sequence[Finding]) -> str:
    missing = [finding.name for finding in core if finding.status == MISSING]
    if missing:
        return f"The core lacks {', '.join(missing)}."
    return "The core has what it needs: trapkit demo runs it once."
