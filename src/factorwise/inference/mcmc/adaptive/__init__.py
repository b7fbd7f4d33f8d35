"""Adaptive proposals: a split-merge proposer whose weights the cross-entropy method tunes."""
