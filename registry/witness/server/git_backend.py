"""Hands a request to `git http-backend` (CGI) and its answer back.

The server has read the request's whole body before, so no slow client keeps a
push lock. A push is answered when git, its hooks and the reconciliation are
done: who is told of success can read the row. A clone is streamed; its git is
killed where the client goes away. git runs in a guarded environment, in a
process group of its own, for a bounded time.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from registry.errors import WitnessError
from registry.guarded_git import guarded_environment
from registry.witness.server.answers import Answer, Refused
from registry.witness.server.reconciliation import Busy, push_lock, reconcile
from registry.witness.server.repositories import Repository

GIT_TIMEOUT_S = 1800.0
PUSH_WAIT_S = 60.0
MAX_FETCH_REQUEST_BYTES = 10_485_760
_MAX_HEAD_BYTES = 16_384
_BLOCK_BYTES = 65_536
_PROTOCOL = re.compile(r"version=[0-2]")
_CONTENT_TYPE = re.compile(r"[a-z0-9/.+-]{1,100}")


def serve_git(repository: Repository, project_root: Path, service: str, environ: Mapping[str, Any]) -> Answer:
    """Answer `info/refs`, `git-upload-pack` or `git-receive-pack`."""
    variables = _variables(repository, project_root, service, environ)
    if service == "git-receive-pack":
        if environ.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise Refused(415, "a push is not compressed once more")
        return _push(repository, variables, environ["wsgi.input"])
    if int(environ.get("CONTENT_LENGTH") or 0) > MAX_FETCH_REQUEST_BYTES:
        raise Refused(413, "the request is too large")
    with tempfile.TemporaryFile() as body:
        _copy(environ["wsgi.input"], body)
        body.seek(0)
        process = _start(variables, body, subprocess.PIPE)
    return _streamed(process)


def _push(repository: Repository, variables: dict[str, str], body: IO[bytes]) -> Answer:
    try:
        with push_lock(repository, PUSH_WAIT_S) as lock, tempfile.TemporaryFile() as output:
            reconcile(repository)
            process = _start(variables, subprocess.PIPE, output, lock)
            timer = _kill_later(process)
            try:
                assert process.stdin is not None
                with contextlib.suppress(BrokenPipeError):  # git refuses before it has read all
                    _copy(body, process.stdin)
                    process.stdin.close()
                process.wait()
            finally:
                timer.cancel()
                _end(process)
            reconcile(repository)
            if process.returncode < 0:
                raise Refused(504, "git took too long, and was ended")
            output.seek(0)
            status, headers = _head(output)
            return Answer(status, headers, [output.read()])
    except Busy:
        raise Refused(503, "another push is under way: try again", ("Retry-After", "10")) from None


def _variables(repository: Repository, root: Path, service: str, environ: Mapping[str, Any]) -> dict[str, str]:
    """The CGI variables, and git's guarded environment; no other header."""
    variables = guarded_environment()
    # The hooks need the Python that runs this server, whatever PATH finds first.
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables.get('PATH', os.defpath)}"
    variables |= {
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{repository.full_name}.git/{service}",
        "REQUEST_METHOD": str(environ["REQUEST_METHOD"]),
        "QUERY_STRING": str(environ.get("QUERY_STRING", "")) if service == "info/refs" else "",
        "REMOTE_USER": "pusher",
        "REMOTE_ADDR": "witness",
        "CONTENT_LENGTH": str(int(environ.get("CONTENT_LENGTH") or 0)),
    }
    for header, variable, form in (
        ("CONTENT_TYPE", "CONTENT_TYPE", _CONTENT_TYPE),
        ("HTTP_CONTENT_ENCODING", "HTTP_CONTENT_ENCODING", re.compile("gzip|x-gzip")),
        ("HTTP_GIT_PROTOCOL", "GIT_PROTOCOL", _PROTOCOL),
    ):
        if form.fullmatch(value := str(environ.get(header, ""))):
            variables[variable] = value
    return variables


def _start(
    variables: dict[str, str], stdin: IO[bytes] | int, stdout: IO[bytes] | int, *inherited: int
) -> subprocess.Popen[bytes]:
    program = shutil.which("git", path=variables["PATH"])
    if program is None:
        raise WitnessError("git is not installed", remedy="install git 2.34 or newer")
    return subprocess.Popen(
        [program, "http-backend"],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        env=variables,
        cwd=variables["GIT_PROJECT_ROOT"],
        pass_fds=inherited,
        start_new_session=True,
    )


def _kill_later(process: subprocess.Popen[bytes]) -> threading.Timer:
    timer = threading.Timer(GIT_TIMEOUT_S, _kill, [process])
    timer.daemon = True
    timer.start()
    return timer


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill git and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """No process, pipe or zombie stays behind."""
    if process.poll() is None:
        _kill(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class _Stream:
    """The rest of git's output; closed by the server when sent or given up."""

    def __init__(self, process: subprocess.Popen[bytes], timer: threading.Timer) -> None:
        self._process = process
        self._timer = timer

    def __iter__(self) -> Iterator[bytes]:
        assert self._process.stdout is not None
        while block := self._process.stdout.read(_BLOCK_BYTES):
            yield block

    def close(self) -> None:
        self._timer.cancel()
        _end(self._process)


def _streamed(process: subprocess.Popen[bytes]) -> Answer:
    assert process.stdout is not None
    stream = _Stream(process, _kill_later(process))
    try:
        status, headers = _head(process.stdout)
    except BaseException:
        stream.close()
        raise
    return Answer(status, headers, stream)


def _head(output: IO[bytes]) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Status and headers of a CGI answer, up to its empty line."""
    status, size = 200, 0
    headers: list[tuple[str, str]] = []
    while True:
        line = output.readline(_MAX_HEAD_BYTES)
        size += len(line)
        if not line or size > _MAX_HEAD_BYTES:
            raise Refused(500, "git gave no answer")
        if not line.strip():
            return status, tuple(headers)
        name, _, value = line.decode("latin-1").strip().partition(": ")
        if name.lower() == "status":
            status = int(value.split()[0])
        else:
            headers.append((name, value))


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    while block := source.read(_BLOCK_BYTES):
        target.write(block)
