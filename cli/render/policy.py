"""A trust policy as text and JSON: whom this verifier believes, and since when."""

from __future__ import annotations

import json
from dataclasses import asdict

from registry.plain_text import plain
from registry.timestamps import timestamp_of
from registry.witness.policy import Policy


def policy_text(policy: Policy) -> str:
    """Everything that is trusted, a line each, and what that word proves."""
    sections = [
        ("GitHub APIs, asked online; tokens go to these only", policy.github_apis),
        ("drand chains, verified offline", [_chain(policy, n) for n in range(len(policy.drand_chains))]),
        ("witness servers, by their signature", [f"{s.key}  {s.url or ''}".strip() for s in policy.witness_servers]),
        ("timestamp roots (RFC 3161), verified offline", [_root(pem) for pem in policy.timestamp_roots]),
        ("GitHub's release attestations, verified offline", [_root(pem) for pem in policy.release_signers]),
        ("signing keys of people", policy.signing_keys),
        ("GH Archive, whose hours show presence only", [policy.gh_archive]),
    ]
    lines = [f"trust policy: {plain(', '.join(policy.sources) or 'nothing built in')}"]
    for title, entries in sections:
        lines += ["", title, *(f"  {plain(entry)}" for entry in entries or ["none"])]
    lines += ["", f"run clocks may differ by {policy.run_clock_allowance_s:g} s where order rests on them"]
    return "\n".join(lines)


def _chain(policy: Policy, number: int) -> str:
    chain = policy.drand_chains[number]
    began = timestamp_of(chain.genesis_s)
    return f"{chain.name}, a round every {chain.period_s} s since {began}, key {chain.public_key[:16]}…"


def _root(pem: str) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    certificate = x509.load_pem_x509_certificates(pem.encode())[0]
    fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
    return f"{certificate.subject.rfc4514_string()}, SHA-256 {fingerprint}"


def policy_json(policy: Policy) -> str:
    """The policy as JSON, in the words of a policy file."""
    return json.dumps({"schema": "trap-policy-1", **asdict(policy)}, indent=1, sort_keys=True)
