"""Plain functions that join rooms: register, draw, run, verify, ledger, demo."""
