"""Frozen predictions: computed on the drawn plans, pushed before any run.

One canonical JSON file a registration version, tagged `pred/<id>/v<N>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.canonical import canonical_bytes, load_json, sha256_hex
from registry.design import RunId
from registry.errors import DraftError
from registry.registration import Registration

SCHEMA = "trap-predictions-1"
Values = Mapping[tuple[str, RunId], float]


@dataclass(frozen=True)
class Predictions:
    """The values of every computed predictor, by (predictor, run); a predicted
    verdict is 1 or 0 (true and false in the file).
    """

    id: str
    version: int
    digest: str
    registration_digest: str
    values: Values


def tag_of(registration: Registration) -> str:
    """`pred/<id>/v<N>`."""
    return f"pred/{registration.id}/v{registration.version}"


def file_of(registration: Registration) -> str:
    """Path of the predictions in the study."""
    return f"predictions/{registration.folder}.json"


def freeze_predictions(registration: Registration, values: Values) -> bytes:
    """The canonical bytes of a registration's predictions."""
    verdicts = {p.name for p in registration.draft.predictors if p.verdict is not None}
    rows = [
        {
            "predictor": name,
            "arm": run.arm,
            "rate": run.rate,
            "seed": run.seed,
            "value": bool(value) if name in verdicts else value,
        }
        for (name, run), value in sorted(values.items(), key=lambda item: (item[0][0], item[0][1].path))
    ]
    return canonical_bytes(
        {
            "schema": SCHEMA,
            "id": registration.id,
            "version": registration.version,
            "registration_digest": registration.digest,
            "values": rows,
        }
    )


def read_predictions(data: bytes, name: str) -> Predictions:
    """Read frozen predictions back; DraftError where they are malformed."""
    value = load_json(data, name)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA or canonical_bytes(value) != data:
        raise DraftError("not canonical predictions of this version", where=name, remedy=f"schema {SCHEMA}")
    try:
        values = {_key(row): float(row["value"]) for row in value["values"]}
        if len(values) != len(value["values"]):
            raise ValueError("a value stands twice")
        return Predictions(
            str(value["id"]), int(value["version"]), sha256_hex(data), str(value["registration_digest"]), values
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DraftError(f"a field of the predictions is malformed: {error}", where=name) from None


def _key(row: dict[str, Any]) -> tuple[str, RunId]:
    rate = None if row["rate"] is None else float(row["rate"])
    return str(row["predictor"]), RunId(str(row["arm"]), rate, int(row["seed"]))
