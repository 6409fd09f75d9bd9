"""The author's side of beacons: which round to freeze, and its value once out."""

from __future__ import annotations

import time

import git

from cli.workflows.receipts import archive_receipts
from cli.workflows.reporter import Reporter
from registry.beacon import BeaconPromise, BeaconValue
from registry.errors import RegistrationError, StudyError
from registry.publish import publish
from registry.registration import Registration
from registry.study import Study
from registry.study_settings import StudySettings
from registry.timestamps import timestamp_of
from registry.witness.archive import LOCAL_LOG, SERVER_LOG, beacon_path
from registry.witness.checkpoint import chain_name
from registry.witness.drand import RoundNotOut, fetch_round, future_round, read_round
from registry.witness.local import CHAIN
from registry.witness.log import parse_log
from registry.witness.policy import QUICKNET, DrandChain, Policy
from registry.witness.rows import drawn_in

PATIENCE_S = 90.0
"""How long after its time a round is asked for: clocks differ, relays lag."""


def promise(settings: StudySettings, policy: Policy, now_s: float) -> BeaconPromise:
    """The beacon round that a registration made now waits for."""
    choice = settings.beacon
    if choice.chain == "local":
        return BeaconPromise(CHAIN, 0)
    if choice.chain == "server":
        assert settings.server is not None
        return BeaconPromise(chain_name(settings.server.key), 0)
    chain = drand_chain(QUICKNET.name if choice.chain == "quicknet" else choice.chain, policy)
    return BeaconPromise(chain.name, future_round(chain, now_s, choice.margin_s))


def drand_chain(name: str, policy: Policy) -> DrandChain:
    """A chain of the user's policy; StudyError where it is not there."""
    chain = policy.chain(name)
    if chain is None:
        raise StudyError(
            "the beacon's chain is not in your policy",
            where="study.yaml, field beacon.chain",
            value=name,
            remedy="use quicknet, or describe the chain in your policy file: drand_chains: [...]",
        )
    return chain


def drawn_value(
    study: Study,
    repository: git.Repo,
    registration: Registration,
    policy: Policy,
    reporter: Reporter,
) -> BeaconValue:
    """A registration's beacon value, from the study's archive or, where it is
    not there yet, from its witness or chain, archived now.

    A drand round is waited for. RegistrationError where there is no value.
    """
    if registration.beacon.chain.startswith("drand:"):
        return _drand_value(study, repository, registration, policy, reporter)
    value = _logged(study, registration)
    if value is None and archive_receipts(study, repository, None, policy, reporter):
        value = _logged(study, registration)
    if value is None:
        raise RegistrationError(
            "the witness has drawn no beacon for this registration",
            where=registration.tag,
            remedy="is the remote the one that trapkit init made, or a witness server? its hook needs python3",
        )
    return value


def _logged(study: Study, registration: Registration) -> BeaconValue | None:
    name = LOCAL_LOG if registration.beacon.chain == CHAIN else SERVER_LOG
    path = study.root / name
    if not path.is_file():
        return None
    return drawn_in(parse_log(path.read_bytes(), name), registration.beacon, registration.tag)


def _drand_value(
    study: Study,
    repository: git.Repo,
    registration: Registration,
    policy: Policy,
    reporter: Reporter,
) -> BeaconValue:
    beacon = registration.beacon
    chain = drand_chain(beacon.chain, policy)
    name = beacon_path(chain.chain_hash, beacon.round)
    path = study.root / name
    if not path.is_file():
        data = _wait_for(chain, beacon.round, reporter)
        publish(repository, study.settings.remote, {name: data}, f"Archive drand round {beacon.round}", "trapkit draw")
    return BeaconValue(beacon.chain, beacon.round, read_round(chain, beacon.round, path.read_bytes(), name), name)


def _wait_for(chain: DrandChain, number: int, reporter: Reporter) -> bytes:
    out_s = chain.time_s(number)
    left_s = out_s - time.time()
    if left_s > 0:
        reporter.say(f"round {number} of {chain.name[:18]}… is out at {timestamp_of(out_s)}: waiting {left_s:.0f} s")
        time.sleep(left_s)
    while True:
        try:
            return fetch_round(chain, number)
        except RoundNotOut:
            if time.time() > out_s + PATIENCE_S:
                raise
            time.sleep(min(1.0, chain.period_s))
