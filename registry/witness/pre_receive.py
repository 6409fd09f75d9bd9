"""pre-receive hook of a witness server: what can never be pushed.

Runs in the bare repository with nothing but the standard library. A push is
refused whole if it deletes a ref, moves a tag, or touches anything but
branches and tags. git itself refuses branches that do not move forward
(`receive.denyNonFastForwards`), and an old value that the pusher invented.
"""

from __future__ import annotations

import os
import sys

MAX_LOG_BYTES = 33_554_432
"""What readers accept; a push that could make the log larger is not taken."""
ROW_BYTES = 600
"""More than a row takes without its ref's name, which takes six bytes each at most."""
MAX_NAME_BYTES = 255


def refusal(before: str, after: str, ref: bytes) -> str | None:
    """Why one update is refused; None where it is not."""
    if not ref.startswith((b"refs/heads/", b"refs/tags/")):
        return "only branches and tags can be pushed"
    if len(ref) > MAX_NAME_BYTES:
        return f"the name is longer than {MAX_NAME_BYTES} bytes"
    try:
        ref.decode("utf-8")
    except UnicodeDecodeError:
        return "the name is not UTF-8"
    if set(after) == {"0"}:
        return "nothing can be deleted here"
    if ref.startswith(b"refs/tags/") and set(before) != {"0"}:
        return "a tag can never be moved"
    return None


def log_bytes(path: str) -> int:
    """How large the log is so far."""
    return os.path.getsize(path) if os.path.exists(path) else 0


def main() -> int:
    """Exit code 1, with a line for each reason, where the push is refused."""
    reasons = []
    size = log_bytes(os.path.join(os.environ.get("GIT_DIR", "."), "trap-witness", "push-log.jsonl"))
    for line in sys.stdin.buffer.read().removesuffix(b"\n").split(b"\n"):
        before, after, ref = line.split(b" ", 2)
        reason = refusal(before.decode("ascii"), after.decode("ascii"), ref)
        if reason:
            reasons.append(f"witness: {reason}: {ref.decode('utf-8', 'replace')}")
        size += ROW_BYTES + 6 * len(ref)
    if size > MAX_LOG_BYTES:
        reasons.append("witness: the push log is full: go on in a new repository")
    sys.stderr.buffer.write("".join(f"{reason}\n" for reason in reasons[:20]).encode())
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
