"""What a check of a ledger, a proof or an auditor's statement found, in words."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from cli.workflows.ledger_check import Checked
from cli.workflows.ledger_published import PublishedLedger
from ledger.audit_statement import Audit
from ledger.proving import Proven
from ledger.reading import Ledger
from ledger.statements import FINDING
from registry.errors import TrapError
from registry.plain_text import plain
from registry.ssh_signature import fingerprint

HOLDS = "HOLDS"
UNSIGNED = "UNSIGNED: it holds together, but anyone could have made it so"
REFUSED = "REFUSED"


def checked_text(checked: Checked) -> str:
    """What was checked; the last line is the outcome."""
    found = checked.found
    if isinstance(found, Ledger):
        lines = list(_ledger_lines(found))
    elif isinstance(found, Proven):
        lines = list(_proof_lines(found))
    else:
        lines = list(_audit_lines(found))
    lines += list(_key_lines(checked))
    if checked.growth:
        earlier = checked.growth.earlier
        lines.append(f"grew from its first {earlier.size} entries: consistency proof of {checked.growth.hashes} hashes")
        if earlier.signature is None:
            lines.append("  that earlier checkpoint is unsigned")
    return "\n".join([*lines, HOLDS if checked.signed else UNSIGNED])


def refused_text(error: TrapError) -> str:
    """Why a file does not hold; the last line is the outcome."""
    return f"{error.diagnostics().replace('error: ', 'it does not hold: ', 1)}\n{REFUSED}"


def summary(ledger: Ledger) -> str:
    """One line: how long the log is, and who signed."""
    size = f"{len(ledger.log)} entries" if len(ledger.log) != 1 else "1 entry"
    if ledger.signer:
        return f"log: {size}, signed by {fingerprint(ledger.signer)}"
    return f"log: {size}, unsigned: the key whose turn it is was not at hand"


def _ledger_lines(ledger: Ledger) -> Iterator[str]:
    log, root = ledger.log, base64.b64encode(ledger.checkpoint.root).decode()
    yield f"ledger of {plain(ledger.value['study'])}: {plain(ledger.value['last_line'])}"
    yield f"log {log.origin}: {len(log)} entries, root {root}"
    for entry in ledger.value["registrations"]:
        index = log.latest(entry["tag"])
        word = "failed" if entry["failed"] else entry["check"]["outcome"]
        verdict = entry["verdict"]["words"] if entry["kind"] == "registration" else "predictions"
        yield f"  {plain(entry['tag'])}: {plain(word)}, {plain(verdict)} (entry {index})"
    gone = sorted(set(log.tags()) - {entry["tag"] for entry in ledger.value["registrations"]})
    for tag in gone:
        yield f"  {plain(tag)}: in the log, and no longer in the study (entry {log.latest(tag)})"
    findings = [number for number, entry in enumerate(log.entries) if entry.kind == FINDING]
    unsigned = [number for number in findings if log.entries[number].signer is None]
    dead = [number for number in findings if log.entries[number].signer and not log.counts(number)]
    if unsigned and ledger.signer:
        yield f"findings not signed when they were logged: {len(unsigned)}; the checkpoint covers them"
    if dead:
        yield f"findings signed by a key that was revoked for them: entries {', '.join(map(str, dead))}"


def _proof_lines(proof: Proven) -> Iterator[str]:
    finding, verdict = proof.finding, proof.finding.get("verdict")
    words = verdict.get("words", "") if isinstance(verdict, dict) else ""
    root = base64.b64encode(proof.checkpoint.root).decode()
    yield f"finding about {plain(finding['tag'])}: {plain(words)}"
    yield f"entry {proof.index} of {proof.checkpoint.size} in {proof.checkpoint.origin}, root {root}"
    if not proof.counts:
        yield "the finding itself is unsigned, or its key was revoked for it"
    yield "whether a later finding, or a revocation, follows it only the whole ledger shows"


def _audit_lines(audit: Audit) -> Iterator[str]:
    said = audit.predicate
    yield f"an auditor's statement about {plain(said['study'])} at {plain(said['head'])[:12]}, {plain(said['at'])}"
    for proof in said["proofs"]:
        yield f"  {plain(proof['tag'])}: {plain(proof['outcome'])}, {plain(proof['status'])}, {plain(proof['verdict'])}"
    yield f"{said['proof_count']} proofs, {said['failure_count']} failures; exit code {said['exit_code']}"
    asked = f"{len(said['asked'])} answers, by their digests" if said["online"] else "no witness was asked"
    yield f"asked online: {asked}"
    for reason in said["unanswered"]:
        yield f"  no answer: {plain(reason)}"
    if audit.signer and audit.signer == said["study_key"]:
        yield "the auditor's key is the study's own: this is the author's word"


def _key_lines(checked: Checked) -> Iterator[str]:
    found = checked.found
    if found.signer:
        yield f"signed by {fingerprint(found.signer)}"
    if checked.first_key is None:
        return
    if checked.compared:
        yield f"rests on the key that you gave, {fingerprint(checked.first_key)}"
    else:
        yield f"rests on the key {checked.first_key}"
        yield "  compare it with one that you know otherwise, or give that one: --key"
    keys = found.log if isinstance(found, Ledger) else found.keys if isinstance(found, Proven) else None
    if keys is None:
        return
    for former, later in zip(keys.keys, keys.keys[1:], strict=False):
        since = keys.revoked.get(former.key)
        note = f"; revoked: its signatures count no more from entry {since}" if since is not None else ""
        yield f"  followed at entry {later.index} by {fingerprint(later.key)}{note}"


def published_text(found: list[PublishedLedger]) -> str:
    """A paragraph a published ledger."""
    if not found:
        return "no ledger is published here: trapkit ledger publish"
    return "\n".join(line for each in found for line in _published_lines(each))


def _published_lines(each: PublishedLedger) -> Iterator[str]:
    if each.ledger:
        root = base64.b64encode(each.ledger.checkpoint.root).decode()
        yield f"{each.tag}: {len(each.ledger.log)} entries, root {root}"
        yield f"  {summary(each.ledger).partition(', ')[2]}"
    else:
        yield f"{each.tag}: unreadable"
    for seen in each.sightings:
        word = "independent" if seen.independent else "the author's word"
        yield f"  seen {seen.time} by the {plain(seen.witness)} ({word}; {plain(seen.source)})"
    if not each.sightings:
        yield "  seen by no witness"
    for problem in each.problems:
        yield f"  REFUTED: {plain(problem)}"
