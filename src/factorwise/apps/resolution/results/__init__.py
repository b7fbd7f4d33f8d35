"""The results of resolution: entities, their probabilities and names, and explanations."""
