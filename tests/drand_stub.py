"""A drand chain of one's own on loopback, with drand's paths and answer fields.

drand itself is reached by no test. The stand-in signs with a secret of its
own by the real scheme, and answers 404 until a round's time, as drand does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import time
from collections.abc import Callable
from typing import Any, Self

from pyblst import BlstP2Element

from registry.witness import drand_signature
from registry.witness.drand import chain_hash
from registry.witness.policy import DrandChain
from tests.loopback import Answer, LoopbackServer, Question

GROUP_HASH = hashlib.sha256(b"the stand-in's group").hexdigest()
BEACON_ID = "stand-in"


class DrandStub:
    """`with DrandStub() as stub:` serves `stub.chain`.

    A round is out once its time has come by `clock`, plus what `advance`
    added: `stub.advance(300)` makes the next five minutes' rounds be out.
    `replace[round]` is served in a round's place.
    """

    def __init__(
        self,
        *,
        period_s: int = 1,
        genesis_s: int | None = None,
        clock: Callable[[], float] = time.time,
        secret: int = 0x1234_5678_9ABC_DEF0,
    ) -> None:
        self._clock = clock
        self._ahead_s = 0.0
        self._secret = secret
        self._server = LoopbackServer(self._answer)
        self.replace: dict[int, Answer] = {}
        key = BlstP2Element.uncompress(bytes.fromhex(drand_signature.GENERATOR)).scalar_mul(secret)
        chain = DrandChain(
            chain_hash="",
            public_key=key.compress().hex(),
            period_s=period_s,
            genesis_s=int(clock()) - 3600 if genesis_s is None else genesis_s,
            urls=(self._server.url,),
        )
        self.chain = dataclasses.replace(chain, chain_hash=chain_hash(chain, GROUP_HASH, BEACON_ID))

    def now(self) -> float:
        """Unix seconds by the stand-in's clock: give it to what should agree."""
        return self._clock() + self._ahead_s

    def advance(self, seconds: float) -> None:
        """Move the stand-in's clock ahead."""
        self._ahead_s += seconds

    def signature(self, number: int) -> str:
        """A round's signature, out or not."""
        point = drand_signature.message_point(number).scalar_mul(self._secret)
        return str(point.compress().hex())

    def answer(self, number: int) -> bytes:
        """What is served for a round, out or not."""
        signature = self.signature(number)
        randomness = hashlib.sha256(bytes.fromhex(signature)).hexdigest()
        return json.dumps({"round": number, "randomness": randomness, "signature": signature}).encode()

    def info(self) -> dict[str, Any]:
        """The chain's description, with the fields of drand's."""
        return {
            "public_key": self.chain.public_key,
            "period": self.chain.period_s,
            "genesis_time": self.chain.genesis_s,
            "hash": self.chain.chain_hash,
            "groupHash": GROUP_HASH,
            "schemeID": drand_signature.SCHEME,
            "metadata": {"beaconID": BEACON_ID},
        }

    @property
    def questions(self) -> list[Question]:
        return self._server.questions

    def _answer(self, question: Question) -> Answer:
        found = re.fullmatch(rf"/{self.chain.chain_hash}/(info|public/([0-9]{{1,19}}))", question.path)
        if not found:
            return Answer(404, b"", "text/plain")
        if found[1] == "info":
            return Answer(body=json.dumps(self.info()).encode())
        number = int(found[2])
        if number in self.replace:
            return self.replace[number]
        if self.chain.time_s(number) > self.now():
            return Answer(404, b"", "application/json")
        return Answer(body=self.answer(number))

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._server.__exit__(*details)
