"""Inference of marginals, best worlds and samples: exact, by message passing, and by MCMC."""
