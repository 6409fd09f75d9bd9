"""One token for all who may push, and, where the server is private, read."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from registry.errors import WitnessError
from registry.witness.server.answers import Refused

VARIABLE = "TRAP_WITNESS_TOKEN"
_SHORTEST = 16
_REALM = ("WWW-Authenticate", 'Basic realm="trap witness", charset="UTF-8"')


class Gate:
    """Lets a request pass, or asks for the token. Keeps its digest only."""

    def __init__(self, token: str | None, *, private: bool = False) -> None:
        if token is not None and (len(token) < _SHORTEST or not token.isascii() or not token.isprintable()):
            raise WitnessError(
                f"{VARIABLE} must be {_SHORTEST} or more printable ASCII characters",
                remedy=f"set it so: {VARIABLE}=$(openssl rand -hex 32)",
            )
        if private and token is None:
            raise WitnessError("a private server needs a token", remedy=f"set {VARIABLE}")
        self._digest = None if token is None else _digest(token)
        self.private = private

    def check(self, authorization: str, *, pushing: bool) -> None:
        """Refused (401) where the request needs the token and lacks it."""
        if self._digest is None or not (pushing or self.private):
            return
        offered = _token_in(authorization)
        if offered is None:
            raise Refused(401, "this needs the witness's token", _REALM)
        if not hmac.compare_digest(self._digest, _digest(offered)):
            raise Refused(401, "the token is wrong", _REALM)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _token_in(authorization: str) -> str | None:
    """The token of `Bearer T`, `token T`, or `Basic base64(anyone:T)`."""
    scheme, _, value = authorization.strip().partition(" ")
    value = value.strip()
    if scheme.lower() in ("bearer", "token"):
        return value or None
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(value, validate=True).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        return password or user or None
    return None
