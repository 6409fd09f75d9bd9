"""Traces of real agent sessions, read into one typed session table."""
