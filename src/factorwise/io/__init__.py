"""Files: models, saved weights, provenance, the data directory, and writing that leaves no half files."""
