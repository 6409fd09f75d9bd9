"""The page of entries that are not like the others: it is written, and says what they are."""

from __future__ import annotations

import dataclasses

from ledger.document import ledger_document
from ledger.page.ledger_page import ledger_page
from registry.design import RunId
from tests.ledger.made import e2, proof, registered, report
from verifier.check import group, refuted
from verifier.report import Proof
from verifier.status import Status


def page(*proofs: Proof) -> str:
    return ledger_page(ledger_document(report(*proofs)))


def test_a_registration_that_cannot_be_read_has_its_place() -> None:
    check = refuted("registration_frozen", "not canonical")
    unread = Proof("reg/odd/v1", None, check, Status("registered", "no witness", "registered"), [], None)
    text = page(unread)
    assert "reg/odd/v1" in text and "unreadable" in text and "FAILED: not canonical" in text
    assert "no witness saw it" in text


def test_predictions_have_neither_verdict_nor_runs() -> None:
    made = dataclasses.replace(proof(registered()), kind="predictions", tag="pred/e2/v1", runs=[], rates=[], scores=[])
    text = page(made)
    assert "Its registration" in text and "Verdict by rate" not in text


def test_runs_of_a_real_engine_are_not_called_simulated() -> None:
    made = proof(registered())
    for run in made.runs:
        run.simulated, run.engine, run.machine, run.job = False, "vllm 0.32.0", "a machine", "Slurm job 7"
    text = page(made)
    assert "Results marked so come from a simulator" not in text and "PASS</b> <span" not in text
    assert "vllm 0.32.0, a machine: consistent records, not proof that it ran" in text
    assert "that a real engine ran: its records are consistent, no more" in text
    assert "BURST/1.35/0: Slurm job 7" in text


def test_missing_runs_are_named_and_attempts_that_were_abandoned() -> None:
    made = proof(registered(), missing=1)
    made.attempts.append(
        dataclasses.replace(made.attempts[0], event="abandoned", attempt=2, last_attempt=2, run_sha256=None,
                            reason="the machine stopped", cause="node_failed")
    )  # fmt: skip
    text = page(made)
    run = made.runs[-1].run
    assert isinstance(run, RunId) and f"</b> {run.path}." in text
    assert "attempt 2: the machine stopped (node_failed)" in text and "was started 2 times" in text


def test_what_a_study_does_not_say_is_said() -> None:
    silent = e2() | {"caveats": [], "deviations": []}
    text = page(proof(registered(silent)))
    assert text.count("None are stated.") == 2


def test_checks_of_runs_are_counted_and_those_that_do_not_hold_are_named() -> None:
    made = proof(registered())
    bad = group("BURST/1.35/0", [refuted("plan", "a session too many")], "")
    others = [child for child in made.check.children if child.name != "BURST/1.35/0"]
    made.check = group(made.tag, [*others, bad], "")
    text = page(made)
    assert '<tr><th scope="row">plan</th><td>17</td><td>1</td><td>0</td></tr>' in text
    assert text.count("a session too many") >= 2 and '<tr><th scope="row">BURST/1.65/0</th><td><b' not in text
