"""post-receive hook of a local witness: appends to the push log.

Runs in the bare repository with nothing but the standard library. Every ref
update becomes one JSON line; the first push of each registration tag draws
the beacon, 32 random bytes, after the push.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime

REGISTRATION = re.compile(r"refs/tags/reg/[a-z0-9-]{1,63}/v[1-9][0-9]{0,5}")
ZERO = re.compile(r"0+")


def activity_type(before, after, ref):
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


def rows(log, updates):
    """The new rows for `before after ref` lines, given the log so far."""
    earlier = [json.loads(line) for line in log]
    drawn = {row["ref"] for row in earlier if "beacon" in row}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for number, update in enumerate(updates, len(earlier) + 1):
        before, after, ref = update.split()
        row = {
            "id": number,
            "timestamp": now,
            "ref": ref,
            "before": before,
            "after": after,
            "activity_type": activity_type(before, after, ref),
        }
        if REGISTRATION.fullmatch(ref) and ref not in drawn and not ZERO.fullmatch(after):
            row["beacon"] = os.urandom(32).hex()
            drawn.add(ref)
        yield row


def main():
    """Append one line an update, under a lock, flushed to disk."""
    folder = os.path.join(os.environ.get("GIT_DIR", "."), "trap-witness")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "push-log.jsonl"), "a+", encoding="utf-8") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.seek(0)
        lines = list(log)
        for row in rows(lines, sys.stdin.read().splitlines()):
            log.write(json.dumps(row, sort_keys=True) + "\n")
        log.flush()
        os.fsync(log.fileno())


if __name__ == "__main__":
    main()
