"""Pairs that another tool has scored: read, and clustered by the common walk."""
