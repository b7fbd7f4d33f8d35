"""Templates over clusterings, and the program of a model that consists of them."""
