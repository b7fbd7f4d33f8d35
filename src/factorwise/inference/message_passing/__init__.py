"""Approximate inference by messages: belief propagation, tree-reweighted, mean field, Bethe entropy."""
