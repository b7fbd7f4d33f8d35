"""The kinds of the columns of a table, read from a file of fields or inferred from names and values."""
