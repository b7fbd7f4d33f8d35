"""Compiled functions: arrays in, arrays out; they validate nothing and allocate nothing."""
