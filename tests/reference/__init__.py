"""Kernels written a second time, slowly, from their definitions: read by tests only."""
