"""Files: models, saved weights, provenance, tables, and atomic writing."""
