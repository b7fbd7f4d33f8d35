"""Walks over labels."""
