"""Applications: each with its data, its templates and an estimator."""
