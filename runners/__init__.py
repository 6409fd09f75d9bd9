"""Executes: engines, the gate, attempts, executors."""
