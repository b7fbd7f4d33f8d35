"""Worlds, which are full settings of the unknowns, and the diffs that change them."""
