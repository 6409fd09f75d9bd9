"""A small set of records with known readings: does this verifier compute right?

The records and the expected values stand in `golden_readings.json`. Times are
multiples of 1/4 s, so that every reading can be worked out by hand with
fractions; null there is NaN here. `golden_digest` names the set, so that a
registration can say by which readings it will be judged.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from artifacts.records import SCHEMAS
from registry.canonical import digest
from registry.design import Window
from registry.reading_catalogue import READING_KINDS, READINGS_VERSION
from verifier.readings import RunFrames, compute_readings


def golden_document() -> dict[str, Any]:
    """The document: `records` (rows by table) and `cases` (window, cell, readings)."""
    text = Path(__file__).with_name("golden_readings.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def golden_digest() -> str:
    """SHA-256, hex, over the RFC 8785 bytes of the document and READINGS_VERSION."""
    return _digest(READINGS_VERSION)


@lru_cache
def _digest(version: int) -> str:
    return digest({"document": golden_document(), "readings_version": version})


def check_golden() -> list[str]:
    """`<case>.<reading>` of every reading that differs by a bit; empty when all is well."""
    document = golden_document()
    frames = frames_of(document["records"])
    return [f"{case['name']}.{name}" for case in document["cases"] for name in _differing(frames, case)]


def frames_of(records: dict[str, list[dict[str, Any]]]) -> RunFrames:
    """Rows (dicts, by table name) as the frames that readings are computed from."""
    return RunFrames(
        **{name: pa.Table.from_pylist(records[name], schema=schema).to_pandas() for name, schema in SCHEMAS.items()}
    )


def _differing(frames: RunFrames, case: dict[str, Any]) -> list[str]:
    window = Window(case["name"], case["start_s"], case["end_s"])
    computed = compute_readings(
        frames,
        window,
        pool_tokens=case["pool_tokens"],
        cache_block_tokens=case["cache_block_tokens"],
    )
    expected = case["readings"]
    names = [*READING_KINDS, *sorted(set(expected) - set(READING_KINDS))]
    return [
        name
        for name in names
        if name not in expected
        or name not in computed
        or expected[name] != (None if math.isnan(computed[name]) else computed[name])
    ]
