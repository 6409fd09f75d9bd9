"""The rule files that ship with the product; no code."""
