"""``factorwise resolve``: which records of tables are of the same entity: learn, resolve, score, explain."""
