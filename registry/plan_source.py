"""Plans taken from another registration: `plan_from`.

The runs of a seed then carry that registration's arrivals, turn counts and
tool times. Those plans existed before this registration was made.
"""

from __future__ import annotations

from dataclasses import dataclass

from registry.beacon import BeaconPromise, BeaconValue
from registry.design import Design
from registry.plan import plan_key

NO_BEACON = BeaconPromise("none", 0)
"""What a registration promises that waits for no beacon of its own."""


@dataclass(frozen=True)
class PlanSource:
    """The registration whose plans are taken, quoted with its beacon value."""

    registration: str
    version: int
    digest: str
    chain: str
    round: int
    signature: str

    @property
    def tag(self) -> str:
        """`reg/<id>/v<N>`."""
        return f"reg/{self.registration}/v{self.version}"

    def key(self, seed: int) -> bytes:
        """The key of a seed's plan, as that registration has it."""
        return plan_key(self.digest, self.round, self.signature, seed)

    def quotes(self, value: BeaconValue) -> bool:
        """Whether this is the beacon value that was quoted."""
        return (self.chain, self.round, self.signature) == (value.chain, value.round, value.signature)


def to_be_quoted(identity: str | None) -> PlanSource | None:
    """What stands for the quoted registration before anything is registered."""
    return PlanSource(identity, 1, "0" * 64, "none", 0, "") if identity else None


def difference(own: Design, own_lambda_ref: float | None, source: Design, lambda_ref: float | None) -> str | None:
    """Why plans drawn for `source` are not plans of `own`; None where they are.

    The two lambda_ref, sessions per second, are the frozen ones: arrivals of
    the same rate fall at the same times only where they agree.
    """
    if source.seeds.binding != "beacon":
        return f"its seeds are bound to {source.seeds.binding}, not to a beacon of its own"
    if own.horizon_s != source.horizon_s:
        return f"its runs last {source.horizon_s:g} s, not {own.horizon_s:g} s"
    if own.workload != source.workload:
        return "its sessions have another workload"
    if unknown := sorted(set(own.seeds.values) - set(source.seeds.values)):
        return f"it has no seed {unknown[0]}"
    if missing := sorted(set(own.rates) - set(source.rates)):
        return f"it has no rate {missing[0]:g}"
    if own.rates and own_lambda_ref != lambda_ref:
        return f"its lambda_ref is {lambda_ref} sessions/s, not {own_lambda_ref}"
    return None
