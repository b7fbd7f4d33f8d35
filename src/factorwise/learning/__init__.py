"""Learning the weights and tables of models from data."""
