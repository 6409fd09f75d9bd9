"""Reading a witness server from afar: its log, its checkpoint, its promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from registry.errors import WitnessError
from registry.witness.checkpoint import MAX_CHECKPOINT_BYTES
from registry.witness.log import MAX_LOG_BYTES
from registry.witness.rows import PushRow

_TIMEOUT_S = 20.0
_BLOCK_BYTES = 65_536
_NEVER = {
    "branch_deletion": "was deleted",
    "tag_deletion": "was deleted",
    "tag_update": "was moved",
    "force_push": "was rewritten",
}

Get = Callable[[str, int], bytes]
"""Fetches a URL: its body, of so many bytes at most."""


def fetch_log(url: str, repository: str, *, get: Get | None = None, token: str | None = None) -> tuple[bytes, bytes]:
    """The log and the checkpoint of `owner/name`, unverified.

    `url` is the server's base. The checkpoint is asked first, so a log that
    grows meanwhile is longer, never shorter. `token` is for private servers,
    and goes to that URL only. WitnessError where the server does not answer.
    """
    fetch = get or (lambda address, cap_bytes: _get(address, cap_bytes, token))
    base = f"{url.rstrip('/')}/witness/{repository}"
    checkpoint = fetch(f"{base}/checkpoint", MAX_CHECKPOINT_BYTES)
    return fetch(f"{base}/log", MAX_LOG_BYTES), checkpoint


def broken_promises(rows: Iterable[PushRow]) -> list[str]:
    """What a log shows that a witness server never lets happen, in words.

    Every row goes on from the one before of its ref; nothing is deleted, moved
    or rewritten. Empty where all promises are kept.
    """
    found = []
    last: dict[str, str] = {}
    for row in rows:
        if row.activity_type in _NEVER:
            found.append(f"row {row.id}: {row.ref} {_NEVER[row.activity_type]}")
        elif row.before != last.get(row.ref, "0" * len(row.before)):
            found.append(f"row {row.id}: {row.ref} does not go on from its row before")
        last[row.ref] = row.after
    return found


def _get(url: str, cap_bytes: int, token: str | None) -> bytes:
    import requests

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with requests.Session() as session:
            session.auth = lambda request: request  # else requests reads ~/.netrc
            with session.get(url, headers=headers, timeout=_TIMEOUT_S, allow_redirects=False, stream=True) as answer:
                return _body(answer, url, cap_bytes)
    except requests.RequestException as error:
        raise WitnessError(f"the witness server cannot be reached: {type(error).__name__}", where=url) from None


def _body(answer: object, url: str, cap_bytes: int) -> bytes:
    import requests

    assert isinstance(answer, requests.Response)
    if answer.status_code != 200:
        raise WitnessError("the witness server refused", where=url, value=answer.status_code)
    data = b""
    for block in answer.iter_content(_BLOCK_BYTES):
        data += block
        if len(data) > cap_bytes:
            raise WitnessError("the witness server's answer is too large", where=url)
    return data
