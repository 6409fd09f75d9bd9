"""Objects of a repository through one `git cat-file --batch`."""

from __future__ import annotations

import contextlib
import subprocess
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from threading import Timer

from registry.errors import CapExceeded, StudyError
from registry.guarded_git import GUARDS, guarded_environment

MAX_OBJECT_BYTES = 67_108_864
_ANSWER_S = 60
_KEPT_BYTES = 65_536
_KEPT = 4096


class ObjectReader:
    """Reads objects by name from one long-lived, guarded git process.

    Small objects are kept, since the trees of a study's commits repeat.
    """

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def read(self, name: str) -> tuple[str, bytes] | None:
        """(type, bytes) of an object; None where there is none.

        `name` is an object id, or one followed by `^{tree}`: never a text
        from a file. CapExceeded for an object over the cap.
        """
        if name in self._kept:
            return self._kept[name]
        timer = Timer(_ANSWER_S, self.close)
        timer.start()
        try:
            found = self._ask(name)
        except (OSError, ValueError):
            raise StudyError("git stopped while objects were read", where=str(self._git_dir)) from None
        finally:
            timer.cancel()
        if found and len(found[1]) <= _KEPT_BYTES:
            self._kept[name] = found
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    def _ask(self, name: str) -> tuple[str, bytes] | None:
        process = self._started()
        assert process.stdin and process.stdout
        process.stdin.write(name.encode("ascii") + b"\n")
        process.stdin.flush()
        header = process.stdout.readline().split()
        if header[-1:] in ([b"missing"], [b"ambiguous"]):
            return None
        if len(header) != 3:
            raise ValueError("no answer")
        kind, size = header[1].decode(), int(header[2])
        if size > MAX_OBJECT_BYTES:
            self.close()
            raise CapExceeded("a git object is too large", value=size)
        data = process.stdout.read(size + 1)
        if len(data) != size + 1:
            raise ValueError("cut short")
        return kind, data[:-1]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                ["git", *GUARDS, "cat-file", "--batch"],
                cwd=self._git_dir,
                env=guarded_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        """End the process; the next read starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()


@lru_cache(maxsize=1024)
def tree_entries(data: bytes, id_bytes: int) -> Mapping[bytes, tuple[bytes, str]]:
    """A tree object's entries: name to (mode, object id in hex).

    Form: `mode SP name NUL id`, ids of `id_bytes` raw bytes. What does not
    have it ends the reading: git's own check refuses such trees at the clone.
    """
    entries: dict[bytes, tuple[bytes, str]] = {}
    position = 0
    while position < len(data):
        space = data.find(b" ", position)
        end = data.find(b"\0", space)
        if space < 0 or end < 0:
            break
        entries[data[space + 1 : end]] = (data[position:space], data[end + 1 : end + 1 + id_bytes].hex())
        position = end + 1 + id_bytes
    return entries
