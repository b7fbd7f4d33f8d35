"""Worlds in which every item has a target: matchings, permutations, trees."""
