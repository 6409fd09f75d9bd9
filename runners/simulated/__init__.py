"""A step-level engine with a prefix cache, in plain Python."""
