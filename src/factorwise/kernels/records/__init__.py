"""Compiled steps from records to pairs of records."""
