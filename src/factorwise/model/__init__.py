"""Templates, the model that adds their scores, and factor graphs unrolled from them."""
