"""Markov networks and directed tables from counts."""
