"""Recomputes: readings, verdicts, scores, proofs. Imports no runner."""
