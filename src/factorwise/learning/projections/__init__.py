"""Learning the weights of energies of projected marginals."""
