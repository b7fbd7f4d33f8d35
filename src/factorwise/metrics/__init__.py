"""How good a prediction is: spans, tokens and their confusion."""
