"""Training of chain CRFs."""
