"""Markov networks and directed models with tables, learned from counts."""
