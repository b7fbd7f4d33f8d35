"""Weights of energies of projected marginals."""
