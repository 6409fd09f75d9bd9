"""The timestamp roots that are built in; an auditor's own file adds to them.

Each is the self-signed root that a public authority's tokens lead to by the
certificates that they carry, as it stands in Mozilla's root store.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n")


@cache
def built_in_roots() -> tuple[str, ...]:
    """PEM certificates, one a text."""
    file = resources.files("registry") / "witness" / "timestamp_roots.pem"
    return tuple(_CERTIFICATE.findall(file.read_text()))
