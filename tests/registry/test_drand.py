"""drand: real rounds of quicknet hold, and nothing near them does."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyblst import BlstP1Element, BlstP2Element

from registry.errors import CapExceeded, TrapError, WitnessError
from registry.witness import drand, drand_signature
from registry.witness.policy import QUICKNET
from tests.drand_stub import DrandStub
from tests.loopback import Answer

ROUNDS = {
    1000: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
    657413: "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
    1000000: "83ad29e4c409f9470fc2ef02f90214df49e02b441a1a241a82d622d9f608ef98fd8b11a029f1bee9d9e83b45088abe72",
    5358915: "95f058cbd1294bc3fa28647dabded06d50b543643fb04e1cb2c5b6204daf20935782f7cae5fa7718cf87b4c43d108842",
    12040883: "929906c959032ab363c9f26570d215d66f5c06cb0c44fe508c12bb5839f04ec895bb6868e5b9ff13ab289bdb5266b394",
}
"""Rounds of quicknet as published by drand's own clients and others."""

INFO = {
    "public_key": QUICKNET.public_key,
    "period": 3,
    "genesis_time": 1692803367,
    "hash": "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
    "groupHash": "f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e",
    "schemeID": "bls-unchained-g1-rfc9380",
    "metadata": {"beaconID": "quicknet"},
}
"""quicknet's own description, as drand's documentation and tests print it."""

SIGNATURE = ROUNDS[657413]
NOT_IN_THE_GROUP = "80" + "00" * 47
"""(0, 2): on the curve, outside the group of prime order."""


def answer(number: object = 657413, signature: object = SIGNATURE, **more: object) -> bytes:
    return json.dumps({"round": number, "signature": signature, **more}).encode()


@pytest.mark.parametrize("number", ROUNDS)
def test_real_rounds_of_quicknet_hold(number: int) -> None:
    drand.verify_round(QUICKNET, number, ROUNDS[number])


@pytest.mark.parametrize("number", [1, 657412, 657414, 1000, 2**53 - 1])
def test_a_signature_holds_for_no_other_round(number: int) -> None:
    with pytest.raises(WitnessError, match="not the chain's"):
        drand.verify_round(QUICKNET, number, SIGNATURE)


@pytest.mark.parametrize("number", [0, -1, 2**53, 2**64])
def test_numbers_that_are_no_round(number: int) -> None:
    with pytest.raises(WitnessError, match="not a round"):
        drand.verify_round(QUICKNET, number, SIGNATURE)


def test_a_signature_holds_under_no_other_key() -> None:
    other = BlstP2Element.uncompress(bytes.fromhex(drand_signature.GENERATOR)).scalar_mul(7).compress().hex()
    for key in (other, drand_signature.GENERATOR):
        with pytest.raises(WitnessError, match="not the chain's"):
            drand.verify_round(dataclasses.replace(QUICKNET, public_key=key), 657413, SIGNATURE)


def negated(signature: str) -> str:
    return str((-BlstP1Element.uncompress(bytes.fromhex(signature))).compress().hex())


def uncompressed_flag_cleared(signature: str) -> str:
    return f"{int(signature[:2], 16) & 0x7F:02x}{signature[2:]}"


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        (SIGNATURE.upper(), "lower-case hex"),
        (SIGNATURE[:-2], "lower-case hex"),
        (SIGNATURE + "00", "lower-case hex"),
        (SIGNATURE + "\n", "lower-case hex"),
        (" " + SIGNATURE[1:], "lower-case hex"),
        ("", "lower-case hex"),
        ("c0" + "00" * 47, "infinity"),
        ("c0" + "00" * 46 + "01", "infinity"),
        ("e0" + "00" * 47, "infinity"),
        (NOT_IN_THE_GROUP, "not a point"),
        ("a0" + "00" * 46 + "02", "not a point"),
        ("ff" * 48, "infinity"),
        ("9f" + "ff" * 47, "not a point"),
        (uncompressed_flag_cleared(SIGNATURE), "not a point"),
        (negated(SIGNATURE), "not the chain's"),
    ],
)
def test_other_spellings_and_other_points_are_refused(signature: str, reason: str) -> None:
    with pytest.raises(WitnessError, match=reason):
        drand.verify_round(QUICKNET, 657413, signature)


def test_a_coordinate_with_the_modulus_added_is_refused() -> None:
    modulus = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
    points = (drand_signature.message_point(number).compress() for number in range(1, 100))
    small = next(p for p in points if int.from_bytes(bytes([p[0] & 0x1F]) + p[1:], "big") + modulus < 2**381)
    other = (int.from_bytes(bytes([small[0] & 0x1F]) + small[1:], "big") + modulus).to_bytes(48, "big")
    with pytest.raises(WitnessError, match="not a point"):
        drand.verify_round(QUICKNET, 1, bytes([other[0] | small[0] & 0xE0]).hex() + other[1:].hex())


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("c0" + "00" * 95, "infinity"),
        ("80" + "00" * 95, "not a point"),
        (QUICKNET.public_key.upper(), "lower-case hex"),
        (QUICKNET.public_key[:96], "lower-case hex"),
        ("", "lower-case hex"),
    ],
)
def test_a_chain_with_an_unusable_key_proves_nothing(key: str, reason: str) -> None:
    with pytest.raises(WitnessError, match=f"public key.*{reason}"):
        drand.verify_round(dataclasses.replace(QUICKNET, public_key=key), 657413, SIGNATURE)


def test_the_answer_of_a_relay_is_read_with_what_else_it_says() -> None:
    randomness = "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587"
    data = answer(randomness=randomness, previous_signature="", note=[1])
    assert drand.parse_round(data, "x") == (657413, SIGNATURE)
    assert drand.read_round(QUICKNET, 657413, data, "x") == SIGNATURE


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "malformed"),
        (b"<html>", "malformed"),
        (b"[]", "not an object"),
        (b"\xff", "malformed"),
        (b'{"round": 1, "round": 657413}', "malformed"),
        (b'{"round": NaN}', "malformed"),
        (b"[" * 200 + b"]" * 200, "nested"),
        (answer(number=True), "no round"),
        (answer(number="657413"), "no round"),
        (answer(number=657413.0), "no round"),
        (answer(number=2**64), "no round"),
        (answer(number=0), "no round"),
        (answer(signature=SIGNATURE.upper()), "lower-case hex"),
        (answer(signature=None), "lower-case hex"),
        (answer(randomness="00" * 32), "SHA-256"),
        (answer(randomness=7), "SHA-256"),
        (answer(number=657414), "another round"),
        (answer(signature=ROUNDS[1000]), "not the chain's"),
    ],
)
def test_an_answer_that_is_not_the_round_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(TrapError, match=reason):
        drand.read_round(QUICKNET, 657413, data, "x")


@given(now_s=st.integers(0, 2**33), part=st.integers(0, 1023), margin_s=st.integers(0, 10_000))
def test_the_round_to_wait_for_is_the_first_after_the_margin(now_s: int, part: int, margin_s: int) -> None:
    now = now_s + part / 1024
    number = drand.future_round(QUICKNET, now, margin_s)
    assert QUICKNET.time_s(number) >= now + margin_s
    assert number == 1 or QUICKNET.time_s(number - 1) < now + margin_s


def test_the_pinned_chain_is_the_one_that_drand_describes() -> None:
    drand.check_info(QUICKNET, json.dumps(INFO).encode(), "x")
    assert drand.chain_hash(QUICKNET, INFO["groupHash"], "quicknet") == QUICKNET.chain_hash  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hash": "00" * 32}, "hash is not the pinned one"),
        ({"public_key": QUICKNET.public_key.upper()}, "public_key"),
        ({"period": 30}, "period"),
        ({"period": 3.0}, "period"),
        ({"genesis_time": 1692803368}, "genesis_time"),
        ({"schemeID": "pedersen-bls-chained"}, "schemeID"),
        ({"groupHash": "00" * 32}, "does not fit"),
        ({"groupHash": None}, "malformed"),
        ({"metadata": {"beaconID": "default"}}, "does not fit"),
        ({"metadata": {"beaconID": 7}}, "malformed"),
        ({"metadata": []}, "does not fit"),
    ],
)
def test_another_description_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(WitnessError, match=reason):
        drand.check_info(QUICKNET, json.dumps(INFO | change).encode(), "x")


def test_the_default_chain_leaves_its_name_out_of_its_hash() -> None:
    # drand's first chain, as its documentation prints it.
    chain = dataclasses.replace(
        QUICKNET,
        period_s=30,
        genesis_s=1595431050,
        public_key="868f005eb8e6e4ca0a47c8a77ceaa5309a47978a7c71bc5cce96366b5d7a569937c529eeda66c7293784a9402801af31",
    )
    group = "176f93498eac9ca337150b46d21dd58673ea4e3581185f869672e59fa4cb390a"
    assert drand.chain_hash(chain, group, "default") == (
        "8990e7a9aaed2ffed73dbd7092123d6f289930540d7651336225dc172e51b2ce"
    )


def test_a_round_is_fetched_once_its_time_has_come() -> None:
    with DrandStub(clock=lambda: 2_000_000_000.25) as stub:
        number = drand.future_round(stub.chain, stub.now(), 60)
        with pytest.raises(drand.RoundNotOut):
            drand.fetch_round(stub.chain, number)
        stub.advance(59)
        with pytest.raises(drand.RoundNotOut):
            drand.fetch_round(stub.chain, number)
        stub.advance(1.75)
        data = drand.fetch_round(stub.chain, number)
        drand.fetch_info(stub.chain)
    assert drand.read_round(stub.chain, number, data, "x") == stub.signature(number)
    with pytest.raises(WitnessError, match="not the chain's"):
        drand.verify_round(QUICKNET, number, stub.signature(number))


def test_a_server_that_lies_is_passed_over() -> None:
    with DrandStub() as honest, DrandStub() as lying:
        lying.replace = {5: Answer(body=honest.answer(6)), 6: Answer(body=b"{" * 70_000), 7: Answer(404)}
        chain = dataclasses.replace(honest.chain, urls=(lying.chain.urls[0], honest.chain.urls[0] + "/"))
        assert lying.chain.chain_hash != "" and honest.chain.public_key == lying.chain.public_key
        for number in (5, 6, 7):
            assert drand.fetch_round(chain, number) == honest.answer(number)
        honest.replace = lying.replace
        with pytest.raises(WitnessError, match="another round"):
            drand.fetch_round(chain, 5)
        with pytest.raises(CapExceeded):
            drand.fetch_round(chain, 6)
        with pytest.raises(drand.RoundNotOut):
            drand.fetch_round(chain, 7)


def test_a_chain_without_servers_says_so() -> None:
    with pytest.raises(WitnessError, match="names no server"):
        drand.fetch_round(dataclasses.replace(QUICKNET, urls=()), 5)
