"""What chain CRFs are trained with."""
