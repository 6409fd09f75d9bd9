"""Checks of the services that witness studies: each is asked one small question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cli.workflows.doctor import DEGRADED, OK, Check, Probes, Verdict
from cli.workflows.remotes import TIMESTAMP_AUTHORITY
from registry.canonical import load_json, sha256_hex
from registry.errors import CapExceeded, DraftError
from registry.witness import drand, http
from registry.witness.gh_archive import hour_name
from registry.witness.github import token_from_environment
from registry.witness.policy import BUILT_IN, QUICKNET
from registry.witness.policy_file import built_in
from registry.witness.timestamp_authority import request_token, verify_token

_CAP_BYTES = 65_536
_FEW_REQUESTS = 20


def github(probes: Probes) -> Verdict:
    """GitHub's API and how many questions it still takes; asking this one is free."""
    url = f"{BUILT_IN.github_apis[0]}/rate_limit"
    token = token_from_environment()
    body = probes.get(url, hosts=(http.host_of(url),), cap_bytes=_CAP_BYTES, types=("application/json",), token=token)
    whose = "with your token" if token else "without a token"
    try:
        left = load_json(body, url)["resources"]["core"]["remaining"]
    except (DraftError, KeyError, TypeError):
        left = None
    if type(left) is not int:
        return Verdict(DEGRADED, "it answers, but not how many requests are left")
    remedy = None if token else "set GITHUB_TOKEN: 5,000 requests an hour instead of 60"
    return Verdict(OK if left > _FEW_REQUESTS else DEGRADED, f"{left:,} requests left this hour {whose}", remedy)


def drand_chain(probes: Probes) -> Verdict:
    """Drand's quicknet: its own description fits the chain that is built in."""
    drand.fetch_info(QUICKNET, get=probes.get)
    return Verdict(OK, "quicknet's description is that of the built-in chain")


def timestamps(probes: Probes) -> Verdict:
    """The default authority stamps a digest, and its root is built in."""
    digest = sha256_hex(b"trapkit doctor")
    token = request_token(TIMESTAMP_AUTHORITY, digest, post=probes.post)
    stamp = verify_token(token, digest, built_in().timestamp_roots, TIMESTAMP_AUTHORITY)
    return Verdict(OK, f"a token of {stamp.authority} verifies")


def gh_archive(probes: Probes) -> Verdict:
    """GH Archive has a recent hour; the file itself is far too large to fetch for this."""
    hour = datetime.now(UTC) - timedelta(hours=6)
    url = f"{BUILT_IN.gh_archive}/{hour_name(hour)}"
    try:
        probes.get(url, hosts=(http.host_of(url),), cap_bytes=_CAP_BYTES)
    except CapExceeded:
        return Verdict(OK, f"{hour_name(hour)} is there")
    return Verdict(DEGRADED, f"{hour_name(hour)} is there, but too small to be an hour's")


ONLINE_CHECKS = (
    Check("GitHub's API", "GitHub's log of pushes as a witness", github, online=True),
    Check("drand", "plans that nobody can foresee", drand_chain, online=True),
    Check("timestamps", "tokens of the default authority (RFC 3161)", timestamps, online=True),
    Check("GH Archive", "an archive of pushes as a witness", gh_archive, online=True),
)
