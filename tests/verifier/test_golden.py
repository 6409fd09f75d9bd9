"""The golden records: reference, hand-worked values and digest."""

from __future__ import annotations

import copy
import hashlib
import math
from typing import Any

import pytest
import rfc8785
from slow_readings import slow_readings

from registry.reading_catalogue import READING_KINDS, READINGS_VERSION
from verifier import golden

DOCUMENT = golden.golden_document()
CASES = {case["name"]: case for case in DOCUMENT["cases"]}


def test_this_verifier_computes_what_it_should() -> None:
    assert golden.check_golden() == []


@pytest.mark.parametrize("name", CASES)
def test_the_slow_reference_gives_the_same_readings_to_the_bit(name: str) -> None:
    case = CASES[name]
    slow = slow_readings(
        DOCUMENT["records"],
        case["start_s"],
        case["end_s"],
        pool_tokens=case["pool_tokens"],
        cache_block_tokens=case["cache_block_tokens"],
    )
    as_json = {key: None if math.isnan(value) else value for key, value in slow.items()}
    assert as_json == case["readings"]
    assert set(case["readings"]) == set(READING_KINDS)


# Worked by hand from the rows; the fractions show how.
BY_HAND = {
    "followup_hit_fraction": 3 / 6,
    "reuse_fraction": (2099 + 2736 + 0 + 2099 + 2749 + 0) / 18500,
    "max_hit_300s": 2 / 4,
    "uncached_prefill_tokens_per_s": (551 + 564 + 3950 + 551 + 2000 + 2650) / 700,
    "outstanding": (8 + 11.5 + 19.75 + 19.5 + 119.25 + 19.75 + 189.5 + 279.5) / 700,
    "turnover_s": 300_000 / (10266 / 700 + 700 / 700),
    "idle_s": (51 + 8 + 122 + 196 + 120 + 100) / 6,
    "idle_from_first_token": 1,
    "sojourn_s": (11.5 + 19.75 + 19.5 + 18 + 119.25 + 19.75 + 189.5) / 7,
    "mean_prompt_tokens": 20500 / 7,
    "completions_per_s": 2 / 700,
    "turns_per_s": 7 / 700,
    "arrivals_per_s": 3 / 700,
    "goodput_per_s": 7 * 100 / 700,
    "refused": 1,
    "paused": 1,
    "delayed": 3,
    "mean_wait_s": (100 + 80 + 49.5) / 3,
    "delay_session_h": (100 + 80 + 49.5) / 3600,
    "engaged_s": 150,
    "release_s": 550,
    "relapses": 1,
    "ttft_s_p50": 4,
    "ttft_with_wait_s_p50": 9,
    "itl_s_p50": 17 / 99,
    "itl_s_p90": 116 / 99,
    "turn_latency_s_p50": 20,
    "turn_latency_with_wait_s_p50": 100,
    "send_lag_s_p99": 0.75,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_hand_worked_readings(name: str) -> None:
    assert CASES["judged"]["readings"][name] == pytest.approx(BY_HAND[name], rel=1e-14)


def test_a_larger_cache_block_turns_a_near_miss_into_a_hit() -> None:
    readings = CASES["judged_by_block"]["readings"]
    assert readings["hits"] == 4
    assert readings["max_hit_300s"] == 3 / 4


def test_hits_are_back_from_the_bin_after_the_last_bad_one() -> None:
    # Bins of 60 s from 220 s: 0 of 1 full hits at 280 s, then 1 of 1 at 420 s, in the bin from 400 s; at 500 s a miss.
    assert CASES["until_hits_are_back"]["readings"]["recovered_s"] == 400.0
    assert CASES["judged"]["readings"]["recovered_s"] is None


def test_the_digest_binds_document_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    whole: dict[str, Any] = {"document": DOCUMENT, "readings_version": READINGS_VERSION}
    digest = hashlib.sha256(rfc8785.dumps(whole)).hexdigest()
    assert golden.golden_digest() == digest
    monkeypatch.setattr(golden, "READINGS_VERSION", READINGS_VERSION + 1)
    assert golden.golden_digest() != digest


def test_a_changed_expectation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: dict[str, Any] = copy.deepcopy(DOCUMENT)
    first, second = changed["cases"][0]["readings"], changed["cases"][1]["readings"]
    first["hits"] = math.nextafter(first["hits"], 9.0)
    first["idle_s"] = None
    del first["paused"]
    second["unheard_of"] = 1.0
    monkeypatch.setattr(golden, "golden_document", lambda: changed)
    assert sorted(golden.check_golden()) == [
        "judged.hits",
        "judged.idle_s",
        "judged.paused",
        "judged_by_block.unheard_of",
    ]
