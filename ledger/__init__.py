"""What auditors read."""
