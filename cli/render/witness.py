"""A witness server's repositories and logs in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from registry.plain_text import plain
from registry.witness.rows import PushRow
from registry.witness.server.repositories import Repository


def created_text(folder: Path, repository: Repository, key: str) -> str:
    """What was made, and the lines that study and auditor need."""
    name = repository.full_name
    return "\n".join(
        [
            f"made the repository {name} (number {repository.id})",
            f"next: trapkit witness serve {folder}",
            "",
            f"its remote, where URL is what clients reach: URL/{name}.git",
            "",
            "for study.yaml:",
            "  witnesses: [server]",
            "  server:",
            '    url: "URL"',
            f'    repository: "{name}"',
            f'    key: "{key}"',
            "",
            "for an auditor's policy:",
            "  schema: trap-policy-1",
            "  witness_servers:",
            f'    - key: "{key}"',
            '      url: "URL"',
        ]
    )


def log_text(rows: Sequence[PushRow]) -> str:
    """A line a row: number, time, what happened, ref, commits, beacon."""
    lines = []
    for row in rows:
        beacon = f"  beacon {row.beacon[:16]}..." if row.beacon else ""
        moved = f"{row.before[:12]}..{row.after[:12]}"
        lines.append(f"{row.id:6}  {row.timestamp}  {row.activity_type:15}  {moved}  {plain(row.ref)}{beacon}\n")
    return "".join(lines)


def check_text(found: Iterable[tuple[str, Sequence[str]]]) -> str:
    """`ok` or the problems of each repository."""
    lines = []
    for name, problems in found:
        lines.append(f"{name}: {'ok' if not problems else f'{len(problems)} problems'}")
        lines += [f"  {plain(problem)}" for problem in problems]
    return "\n".join(lines) or "no repositories here"
