"""How results look in a terminal: pure functions from values to text."""
