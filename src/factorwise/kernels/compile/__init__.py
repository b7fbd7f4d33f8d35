"""Compiling, the code that is generated, its cache, random numbers and threads."""
