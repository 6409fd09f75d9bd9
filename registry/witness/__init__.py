"""Witnesses of pushes, and the beacon that each can draw."""
