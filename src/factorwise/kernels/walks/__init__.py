"""The loops that walk over worlds of any kind, their data structures, and functions that parts may call."""
