"""Pipelines that combine applications: from plain text to mentions and entities."""
