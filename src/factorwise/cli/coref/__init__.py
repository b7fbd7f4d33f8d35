"""``factorwise coref``: learn which mentions speak of the same entity, find entities, score them."""
