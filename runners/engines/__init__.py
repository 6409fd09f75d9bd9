"""Engines that serve: starting, asking, measuring and ending them."""
