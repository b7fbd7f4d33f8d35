"""Likelihood of templated models on any graph, and priors on their weights."""
