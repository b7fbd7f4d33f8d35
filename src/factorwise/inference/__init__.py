"""From scores to marginals, best worlds and samples: exact, by message passing, by MCMC."""
