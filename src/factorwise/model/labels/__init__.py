"""Templates over assignments of labels, and the program of a model made of them."""
