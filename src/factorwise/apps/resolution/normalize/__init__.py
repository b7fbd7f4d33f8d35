"""Normal forms of columns, by kind: the input of comparisons and blocking."""
