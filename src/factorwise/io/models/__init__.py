"""Model files, and what they say of where a model comes from."""
