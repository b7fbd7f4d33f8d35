"""Variables and what is observed of them: domains, columns, sparse named features, fields of records."""
