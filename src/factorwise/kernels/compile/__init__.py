"""Compilation: generated code, its cache, random numbers and threads."""
