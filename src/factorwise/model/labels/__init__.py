"""Templates over assignments of labels, and the program of a model that consists of them."""
