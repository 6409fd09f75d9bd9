"""What a dishonest author could try, in short: the rows that matter most to a reader.

docs/attacks.md has them all, a test each; the rows here are rows of that page.
"""

from __future__ import annotations

ATTACK_MODEL = (
    ("tag moved and pushed again", "`push_witnessed`, `tag_signed`", "REFUTED"),
    ("back-dated commit and tag", "`drawn_after_push`", "void"),
    ("an earlier version passed over", "`supersedes`", "REFUTED"),
    ("push 1 s late, equal times, round passed", "`drawn_after_push`", "void"),
    ("the witness's log made anew, chain and all", "`push_witnessed`", "REFUTED"),
    ("forced seeds: runs with plans of the author's", "`plan`", "REFUTED"),
    ("runs begun before the push", "the status", "REFUTED"),
    ("a claim beyond the witness", "the status", "REFUTED"),
    ("predictions pushed after a run, the records' times shifted", "`before_any_run`", "REFUTED"),
    ("attempt hidden", "`results_pushed`", "UNPROVABLE"),
    ("attempt retried", "the first complete attempt decides", "no effect"),
    ("attempts log rewritten by force", "`attempts_log`", "REFUTED"),
    ("turns dropped", "`turns`", "REFUTED"),
    ("latencies of one run in another", "`runs_distinct`", "REFUTED"),
    ("a latency shortened by its last bit", "`executed_again`", "REFUTED"),
    ("records that the engine's own counters contradict", "`engine_counters`", "REFUTED"),
)
"""Attack, what shows it, and what becomes of it."""
