"""Model files, and the provenance that they record."""
