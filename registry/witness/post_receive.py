"""post-receive hook of a witness: appends to the push log.

Runs in the bare repository with nothing but the standard library. Every ref
update becomes one JSON line that holds the SHA-256 of the line before it; the
first push of each registration tag draws the beacon, 32 random bytes, after
the push. Times never step back: where the clock does, the last row's time
stands again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

REGISTRATION = re.compile(r"refs/tags/reg/[a-z0-9-]{1,63}/v[1-9][0-9]{0,5}")
ZERO = re.compile(r"0+")
FIRST = "0" * 64
"""What the first row names as the digest of the row before it."""


def activity_type(before: str, after: str, ref: str) -> str:
    """The words of GitHub's activity log, and the same for tags."""
    kind = "tag" if ref.startswith("refs/tags/") else "branch"
    if ZERO.fullmatch(before):
        return kind + "_creation"
    if ZERO.fullmatch(after):
        return kind + "_deletion"
    if kind == "tag":
        return "tag_update"
    forward = subprocess.run(["git", "merge-base", "--is-ancestor", before, after])
    return "push" if forward.returncode == 0 else "force_push"


def new_lines(log: bytes, updates: Iterable[str], now: datetime) -> Iterator[bytes]:
    """The new lines for `before after ref` updates, given the log so far."""
    lines = log.split(b"\n")[:-1]
    earlier = [json.loads(line) for line in lines]
    drawn = {row["ref"] for row in earlier if "beacon" in row}
    timestamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if earlier:
        timestamp = max(timestamp, earlier[-1]["timestamp"])
    previous = hashlib.sha256(lines[-1]).hexdigest() if lines else FIRST
    for number, update in enumerate(updates, len(lines) + 1):
        before, after, ref = update.split(" ", 2)
        row = {
            "id": number,
            "timestamp": timestamp,
            "ref": ref,
            "before": before,
            "after": after,
            "activity_type": activity_type(before, after, ref),
            "previous": previous,
        }
        if REGISTRATION.fullmatch(ref) and ref not in drawn and not ZERO.fullmatch(after):
            row["beacon"] = os.urandom(32).hex()
            drawn.add(ref)
        line = json.dumps(row, sort_keys=True).encode()
        previous = hashlib.sha256(line).hexdigest()
        yield line + b"\n"


def main() -> None:
    """Append one line an update, under a lock, flushed to disk."""
    # Only a line feed ends a line: a ref's name may hold what Python also takes for one.
    updates = sys.stdin.buffer.read().decode("utf-8", "replace").removesuffix("\n").split("\n")
    folder = os.path.join(os.environ.get("GIT_DIR", "."), "trap-witness")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "push-log.jsonl"), "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        log = file.read()
        # What a crash cut off in mid-line was never a row: nobody was answered with it.
        whole = log[: log.rfind(b"\n") + 1]
        file.truncate(len(whole))
        file.write(b"".join(new_lines(whole, updates, datetime.now(UTC))))
        file.flush()
        os.fsync(file.fileno())


if __name__ == "__main__":
    main()
