"""Proposers over clusterings and labels."""
