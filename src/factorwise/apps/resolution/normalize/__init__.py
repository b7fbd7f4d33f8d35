"""Columns in normal form, by kind: what comparisons and blocking look at."""
