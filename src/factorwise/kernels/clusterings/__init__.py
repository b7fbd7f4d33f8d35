"""Walks over clusterings."""
