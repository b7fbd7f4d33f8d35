"""Jumps of an adaptive proposer over clusterings."""
