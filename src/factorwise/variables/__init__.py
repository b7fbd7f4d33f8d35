"""Unknowns and what is known about them: domains, columns of variables, named sparse features."""
