"""A predictor as a rule file states it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Predictor:
    """A prediction of one reading, which a run hits within the tolerance; or
    of one `verdict` of the arm's runs, which a run hits if it is the same.

    It speaks of an arm at a `rate`; None is every rate, or a closed
    population. A `stated` one has its `value`, in the reading's unit or in
    multiples of the reference value `times`. The other kinds are computed on
    the drawn plans: `costs` says which costs the theory takes; the fluid starts
    at `all_miss_from_s` with `sessions_present`. A predicted verdict has
    neither window nor reading nor tolerance.
    """

    name: str
    kind: str
    source: str
    arm: str
    rate: float | None
    window: str | None = None
    reading: str | None = None
    relative_tolerance: float | None = None
    verdict: str | None = None
    value: float | bool | None = None
    times: str | None = None
    predictor_version: int | None = None
    costs: str | None = None
    all_miss_from_s: float | None = None
    sessions_present: float | None = None

    @property
    def computed(self) -> bool:
        """Whether `trapkit predict` evaluates it."""
        return self.kind != "stated"

    @property
    def rule_name(self) -> str:
        """Its name in rules, where a hyphen would be a minus."""
        return self.name.replace("-", "_")
