"""What the columns of a table are: said in a file of fields, or inferred from names and values."""
