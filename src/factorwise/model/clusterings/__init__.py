"""Templates over clusterings, and the program of a model made of them."""
