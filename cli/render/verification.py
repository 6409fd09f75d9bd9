"""A verification as text: a table a registration, problems, the proof count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cli.render.table import number, table
from registry.plain_text import plain
from verifier.check import Check, Outcome
from verifier.report import Proof, StudyReport
from verifier.run_report import RunReport

HEADLINE = (
    ("followup_hit_fraction", "hits"),
    ("uncached_prefill_tokens_per_s", "uncached tok/s"),
    ("backlog_slope_per_s", "backlog slope/s"),
    ("mean_prompt_tokens", "mean prompt"),
    ("completions_per_s", "completions/s"),
    ("idle_s", "idle s"),
    ("turnover_s", "turnover s"),
)
STATE_WORDS = {
    "missing": "never started",
    "abandoned": "abandoned, started and without a result",
    "undecided": "complete, and not the attempt that may decide",
    "unrecorded": "unrecorded, complete here and its result not pushed",
}
_MAX_LISTED = 12


def verification_text(report: StudyReport) -> str:
    """The whole report; its last line is the proof count."""
    parts = [f"study {plain(report.study)} at {report.head[:12]}; push log: {plain(report.witness_source)}"]
    parts += [proof_text(proof) for proof in report.proofs] or ["nothing is registered yet: trapkit register FILE"]
    parts += [f"attempts log REFUTED: {plain(problem)}" for problem in report.log_problems]
    if report.exploratory:
        parts.append(f"{len(report.exploratory)} exploratory runs beside them (unregistered, never evidence)")
    if report.unseen:
        listed = [f"  {plain(words)}" for words in report.unseen[:_MAX_LISTED]]
        parts.append("\n".join(("pushes whose commits are not in this clone; what they held cannot be told:", *listed)))
    return "\n\n".join(parts) + f"\n\n{report.last_line}"


def proof_text(proof: Proof) -> str:
    """One proof: status, verdicts, runs, problems."""
    title = plain(proof.registration.draft.title) if proof.registration else "unreadable"
    if proof.kind == "predictions":
        title = f"predictions for: {title}"
    verdict = f" · verdict {proof.verdict.words}" if proof.kind == "registration" else ""
    lines = [f"{proof.tag}  {title}", f"  proof {_word(proof)}{verdict}"]
    lines.append(f"  claim {proof.claim} · status {proof.status.name}: {proof.status.reason}")
    if proof.push:
        drawn = f", beacon {proof.beacon.signature[:12]}… after it" if proof.beacon else ""
        seen = f"by the clock of the {proof.push.witness}, {proof.push.source}"
        lines.append(f"  pushed {proof.push.time} {plain(seen)}{drawn}")
    if any(run.simulated for run in proof.runs):
        lines.append("  SIMULATED: these runs are a simulator's, not a GPU's")
    for engine, machine in sorted({(str(run.engine), run.machine) for run in proof.runs if run.machine}):
        lines.append(f"  REAL ENGINE: {plain(engine)} on {plain(machine)}; consistent records, not proof that it ran")
    jobs = [run.job for run in proof.runs if run.job]
    if jobs:
        lines.append(f"  {len(jobs)} runs were jobs, by their own records; the first: {plain(jobs[0], 300)}")
    if any(run.readings for run in proof.runs):
        lines.append(_runs_table(proof))
    lines += _score_lines(proof)
    lines += _problem_lines(proof)
    counts = Counter(leaf.outcome for leaf in proof.check.leaves())
    lines.append("  checks: " + ", ".join(f"{counts[outcome]} {outcome.lower()}" for outcome in Outcome))
    return "\n".join(lines)


def _word(proof: Proof) -> str:
    if proof.claim_too_strong:
        return f"FAILED: the claim {proof.claim} exceeds the status {proof.status.name}"
    if proof.failed:
        return "FAILED"
    return (
        str(proof.check.outcome) if not proof.missing else f"{proof.check.outcome}, {len(proof.missing)} runs missing"
    )


def _runs_table(proof: Proof) -> str:
    assert proof.registration is not None
    window = proof.registration.draft.judged_window
    head = ["rate", "arm", "seed", "verdicts", *(label for _, label in HEADLINE)]
    rows = [head]
    for run in sorted(proof.runs, key=lambda r: (r.run.rate or 0.0, r.run.arm, r.run.seed)):
        if run.readings:
            values = run.readings[window]
            rows.append(
                [
                    run.run.rate_name,
                    run.run.arm,
                    str(run.run.seed),
                    verdict_words(run),
                    *(number(values[name]) for name, _ in HEADLINE),
                ]
            )
    return table(rows) + f"\n  readings over the window {window}"


def verdict_words(run: RunReport) -> str:
    """`trapped yes, zero_hits no` for a run."""
    words = {True: "yes", False: "no", None: "not decidable"}
    return ", ".join(f"{v.name} {words[v.decision.value]}" for v in run.verdicts) or "none"


def _score_lines(proof: Proof) -> Iterator[str]:
    for score in proof.scores:
        measured = ", ".join(map(_value_words, score.measured.values())) or "no runs"
        values = list(score.predicted.values() if score.verdict else dict.fromkeys(score.predicted.values()))
        predicted = ", ".join(map(_value_words, values)) or "not frozen before the runs:"
        margin = "" if score.relative_tolerance is None else f" ± {score.relative_tolerance:.0%}"
        at = "" if score.rate is None else f" at {score.rate:g}"
        kind = f"{score.kind}, {score.verdict}" if score.verdict else score.kind
        yield (
            f"  prediction {score.name} ({kind}){at}: {predicted}{margin}; "
            f"measured {measured}; {score.hits} of {len(score.measured)} hit"
        )


def _value_words(value: float | bool) -> str:
    """A predicted or measured value: a number, or a verdict in words."""
    return ("yes" if value else "no") if isinstance(value, bool) else number(value)


def _problem_lines(proof: Proof) -> Iterator[str]:
    bad = list(problems(proof.check))
    for path, check in bad[:_MAX_LISTED]:
        yield f"  {check.outcome}  {path}: {plain(check.reason, 400)}"
    if len(bad) > _MAX_LISTED:
        yield f"  … and {len(bad) - _MAX_LISTED} more (--json lists all)"
    for run in proof.missing[:_MAX_LISTED]:
        yield f"  MISSING  {run.run.path}: {STATE_WORDS[run.state]}"
    if len(proof.missing) > _MAX_LISTED:
        yield f"  … and {len(proof.missing) - _MAX_LISTED} more missing runs"
    for rate in proof.rates:
        if rate.decision.value is None:
            name = "closed" if rate.rate is None else f"rate {rate.rate:g}"
            yield f"  NOT DECIDABLE  {name}: {rate.decision.reason}"


def problems(check: Check, above: str = "") -> Iterator[tuple[str, Check]]:
    """Every needed check below that is refuted or unprovable, with its path."""
    path = f"{above} {check.name}".strip()
    if check.children:
        for child in check.children:
            yield from problems(child, "" if not above and check.name.startswith("reg/") else path)
    elif check.outcome is not Outcome.PROVEN and check.needed:
        yield path, check
