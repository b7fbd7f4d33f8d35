"""Strings as numbers."""
