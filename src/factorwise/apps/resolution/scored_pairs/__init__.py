"""Read pairs that another tool has scored, and cluster them with the common search."""
