"""GitHub's certificates, from what `gh attestation trusted-root` prints.

One sigstore trusted root (JSON) a line. The auditor keeps the file: GitHub's
intermediates last for years, the certificate that signs its tokens for one.
"""

from __future__ import annotations

import base64
import textwrap
from dataclasses import dataclass
from typing import Any

from registry.canonical import load_json
from registry.errors import CapExceeded, DraftError, WitnessError

SIGNERS = "fulcio.githubapp.com"
TIMESTAMPS = "timestamp.githubapp.com"
MAX_BYTES = 4_194_304


@dataclass(frozen=True)
class TrustedRoot:
    """PEM certificates, roots among them: of who signs releases, and of who stamps them."""

    signers: tuple[str, ...]
    timestamps: tuple[str, ...]


def read_trusted_root(data: bytes, name: str) -> TrustedRoot:
    """GitHub's own authorities in a trusted-root file; those of the public sigstore are left out.

    Raises WitnessError where it is malformed or has none of GitHub's.
    """
    try:
        roots = [load_json(line, name, MAX_BYTES) for line in data.splitlines() if line.strip()]
        signers = [pem for root in roots for pem in _chains(root, "certificateAuthorities", SIGNERS)]
        timestamps = [pem for root in roots for pem in _chains(root, "timestampAuthorities", TIMESTAMPS)]
    except (DraftError, CapExceeded, KeyError, TypeError, AttributeError, ValueError):
        raise WitnessError("not what `gh attestation trusted-root` prints", where=name) from None
    if not signers or not timestamps:
        raise WitnessError("the file names no authority of GitHub's", where=name)
    return TrustedRoot(tuple(dict.fromkeys(signers)), tuple(dict.fromkeys(timestamps)))


def _chains(root: dict[str, Any], kind: str, uri: str) -> list[str]:
    authorities = [each for each in root.get(kind, []) if each["uri"] == uri]
    return [_pem(item["rawBytes"]) for each in authorities for item in each["certChain"]["certificates"]]


def _pem(encoded: str) -> str:
    text = base64.b64encode(base64.b64decode(encoded, validate=True)).decode()
    return "\n".join(["-----BEGIN CERTIFICATE-----", *textwrap.wrap(text, 64), "-----END CERTIFICATE-----", ""])
