"""The auditor's trust policy: whose word counts.

Built in, and extended by the auditor's own file; never by a study. A key, a
host or a root that only a study names earns at most "registered".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DrandChain:
    """A drand chain on G1 signatures (`bls-unchained-g1-rfc9380`).

    `chain_hash` and `public_key` (G2, compressed) are lower-case hex; round r
    is out at `genesis_s + (r - 1) * period_s`, Unix seconds. `urls` are bases
    of its HTTP API, without the chain hash.
    """

    chain_hash: str
    public_key: str
    period_s: int
    genesis_s: int
    urls: tuple[str, ...]

    @property
    def name(self) -> str:
        """How a registration names the chain."""
        return f"drand:{self.chain_hash}"

    def time_s(self, number: int) -> int:
        """When a round is out, Unix seconds."""
        return self.genesis_s + (number - 1) * self.period_s


@dataclass(frozen=True)
class TrustedServer:
    """A witness server that someone other than the author runs.

    `key` (`ssh-ed25519 ...`) signs its checkpoints; `url` is asked online.
    """

    key: str
    url: str | None = None


@dataclass(frozen=True)
class Policy:
    """Everything that an auditor trusts.

    `github_apis` are API bases; tokens go to their hosts only.
    `timestamp_roots` are PEM certificates, `release_signers` and
    `release_timestamps` those of GitHub's release attestations. `run_clock_allowance_s` is what a
    run's clock may differ by where order rests on it.
    """

    github_apis: tuple[str, ...]
    drand_chains: tuple[DrandChain, ...]
    witness_servers: tuple[TrustedServer, ...] = ()
    timestamp_roots: tuple[str, ...] = ()
    release_signers: tuple[str, ...] = ()
    release_timestamps: tuple[str, ...] = ()
    signing_keys: tuple[str, ...] = ()
    gh_archive: str = "https://data.gharchive.org"
    run_clock_allowance_s: float = 0.0
    sources: tuple[str, ...] = ("built in",)

    def chain(self, name: str) -> DrandChain | None:
        """The trusted chain of this name, None where there is none."""
        return next((chain for chain in self.drand_chains if chain.name == name), None)


QUICKNET = DrandChain(
    chain_hash="52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
    public_key=(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c"
        "8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb"
        "5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    ),
    period_s=3,
    genesis_s=1692803367,
    urls=("https://api.drand.sh", "https://drand.cloudflare.com"),
)
"""drand's quicknet, run by the League of Entropy."""

BUILT_IN = Policy(github_apis=("https://api.github.com",), drand_chains=(QUICKNET,))
