"""A frozen registration: canonical JSON with everything that decides.

The draft is carried whole; round, calibration, rehearsal and cell constants
are frozen around it. Two drafts are the same registration if their
`draft_sha256` agree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from modelf.cells import Cell
from registry.beacon import BeaconPromise, BeaconValue
from registry.bundle import frozen_scripts, unbundled
from registry.canonical import canonical_bytes, load_json, sha256_hex
from registry.design import RunId, cell_under
from registry.draft import Draft, build_draft
from registry.draft_workload import no_scripts
from registry.engine_setup import EngineSetup, setup_of
from registry.errors import DraftError, RegistrationError
from registry.frozen_form import check_form, check_quoted, frozen_cell
from registry.plan import PLAN_VERSION, Plan, make_plan, plan_key
from registry.plan_source import PlanSource
from registry.strict_yaml import Document

SCHEMA = "trap-registration-1"
_FIELDS = {
    "schema",
    "id",
    "version",
    "draft",
    "draft_sha256",
    "cell",
    "beacon",
    "calibration",
    "rehearsal",
    "readings",
    "records_version",
    "plan_version",
    "claim",
    "supersedes",
}
_OPTIONAL_FIELDS = {"plan_from", "engine", "session_scripts"}


@dataclass(frozen=True)
class Calibration:
    """What a registration quotes from its cell's calibration.

    `runs` maps each run's path to (SHA-256 of its run.json, measured value).
    """

    registration: str
    version: int
    digest: str
    all_miss_prefill_tokens_per_s: float
    lambda_ref_per_s: float
    runs: dict[str, tuple[str, float]]


@dataclass(frozen=True)
class Registration:
    """A frozen registration as read back from its bytes."""

    id: str
    version: int
    digest: str
    draft: Draft
    draft_sha256: str
    cell: Cell
    beacon: BeaconPromise
    calibration: Calibration | None
    rehearsal: dict[str, Any] | None
    readings_version: int
    readings_golden_sha256: str
    records_version: int
    plan_version: str
    claim: str
    supersedes: str | None
    plan_source: PlanSource | None = None
    engine: EngineSetup | None = None

    @property
    def tag(self) -> str:
        """`reg/<id>/v<N>`."""
        return f"reg/{self.id}/v{self.version}"

    @property
    def folder(self) -> str:
        """`<id>.v<N>`, the registration's place below `runs/`."""
        return f"{self.id}.v{self.version}"

    @property
    def file(self) -> str:
        """Path of the frozen file in the study."""
        return f"registrations/{self.folder}.json"

    def cell_of(self, run: RunId) -> Cell:
        """The cell as the run's arm has it: its pool may be capped."""
        return cell_under(self.draft.design.arm(run.arm), self.cell)

    def lambda_per_s(self, run: RunId) -> float | None:
        """The run's arrival rate, sessions per second; None where closed."""
        if run.rate is None:
            return None
        if self.calibration is None:
            raise RegistrationError("rates without a calibration", where=self.file)
        return run.rate * self.calibration.lambda_ref_per_s

    @property
    def waits_for_beacon(self) -> bool:
        """Whether its plans come from a beacon value of its own."""
        return self.draft.design.seeds.binding == "beacon"

    def plan_key(self, seed: int, beacon: BeaconValue | None) -> bytes:
        """The key of a seed's plan; `beacon` is needed for beacon binding."""
        if self.plan_source and self.draft.design.seeds.binding == "plan_from":
            return self.plan_source.key(seed)
        if self.draft.design.seeds.binding == "literal":
            return plan_key("", 0, "", seed)
        if beacon is None:
            raise RegistrationError(
                f"{self.id} has not been drawn", remedy=f"draw its plans first: trapkit draw {self.id}"
            )
        return plan_key(self.digest, beacon.round, beacon.signature, seed)

    def plan(self, run: RunId, beacon: BeaconValue | None) -> Plan:
        """The plan of one registered run."""
        design = self.draft.design
        key = self.plan_key(run.seed, beacon)
        return make_plan(key, design, design.arm(run.arm), self.lambda_per_s(run), run.rate)

    def references(self, run: RunId) -> dict[str, float]:
        """The reference values that the run's rules may name."""
        values: dict[str, float] = {
            "pool_tokens": float(self.cell_of(run).pool_tokens),
            "session_prompt_tokens": self.draft.design.workload.expected_session_prompt_tokens(),
        }
        rate = self.lambda_per_s(run)
        if self.calibration and rate is not None:
            values["lambda_per_s"] = rate
            values["lambda_ref_per_s"] = self.calibration.lambda_ref_per_s
            values["all_miss_prefill_tokens_per_s"] = self.calibration.all_miss_prefill_tokens_per_s
        gate = self.draft.design.arm(run.arm).gate
        if gate and gate.cap is not None:
            values["cap"] = float(gate.cap)
        return values


def freeze(
    draft: Draft,
    version: int,
    *,
    beacon: BeaconPromise,
    calibration: Calibration | None,
    rehearsal: dict[str, Any] | None,
    readings: dict[str, Any],
    records_version: int,
    claim: str,
    supersedes: str | None,
    plan_source: PlanSource | None = None,
    engine: EngineSetup | None = None,
) -> bytes:
    """The canonical bytes of a registration. Pure: results come as values."""
    quoted: dict[str, Any] = {"plan_from": asdict(plan_source)} if plan_source else {}
    if engine:
        quoted["engine"] = engine.frozen()
    if draft.session_scripts:
        quoted["session_scripts"] = draft.session_scripts.facts()
    return canonical_bytes(
        {
            **quoted,
            "schema": SCHEMA,
            "id": draft.id,
            "version": version,
            "draft": draft.source,
            "draft_sha256": draft.sha256,
            "cell": asdict(draft.cell) | {"constants": [asdict(c) for c in draft.cell.constants]},
            "beacon": asdict(beacon),
            "calibration": asdict(calibration) if calibration else None,
            "rehearsal": rehearsal,
            "readings": readings,
            "records_version": records_version,
            "plan_version": PLAN_VERSION,
            "claim": claim,
            "supersedes": supersedes,
        }
    )


def read_registration(data: bytes, name: str) -> Registration:
    """Read frozen bytes back, bundled with the scripts that they name; raises
    DraftError where they are not canonical, not of this schema, or where the
    draft's digest does not fit or the scripts are missing or others.
    """
    data, scripts = unbundled(data)
    value = load_json(data, name)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA or set(value) - _OPTIONAL_FIELDS != _FIELDS:
        raise DraftError("not a frozen registration of this version", where=name, remedy=f"schema {SCHEMA}")
    check_form(value, name)
    if canonical_bytes(value) != data:
        raise DraftError("the file is not in canonical form (RFC 8785)", where=name)
    try:
        return _build(value, sha256_hex(data), name, scripts)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DraftError(f"a field of the registration is malformed: {error}", where=name) from None


def _build(value: dict[str, Any], digest: str, name: str, scripts: bytes | None) -> Registration:
    cell = frozen_cell(value["cell"])
    source = frozen_scripts(value["session_scripts"], scripts) if "session_scripts" in value else no_scripts
    draft = build_draft(Document(name, value["draft"]), {cell.name: cell}, source)
    if draft.sha256 != value["draft_sha256"]:
        raise DraftError("draft_sha256 is not the digest of the draft", where=name, value=value["draft_sha256"])
    if draft.id != value["id"]:
        raise DraftError("the id differs from the draft's", where=name)
    check_quoted(value, name)
    if value["plan_version"] != PLAN_VERSION:
        raise DraftError("an unknown plan version", where=name, value=value["plan_version"])
    return Registration(
        id=draft.id,
        version=value["version"],
        digest=digest,
        draft=draft,
        draft_sha256=value["draft_sha256"],
        cell=cell,
        beacon=BeaconPromise(**value["beacon"]),
        calibration=_calibration(value["calibration"]),
        rehearsal=value["rehearsal"],
        readings_version=value["readings"]["version"],
        readings_golden_sha256=value["readings"]["golden_sha256"],
        records_version=value["records_version"],
        plan_version=value["plan_version"],
        claim=value["claim"],
        supersedes=value["supersedes"],
        plan_source=PlanSource(**value["plan_from"]) if "plan_from" in value else None,
        engine=setup_of(value["engine"], name) if "engine" in value else None,
    )


def _calibration(value: dict[str, Any] | None) -> Calibration | None:
    if value is None:
        return None
    runs = {path: (str(pair[0]), float(pair[1])) for path, pair in value["runs"].items()}
    return Calibration(**{**value, "runs": runs})
