"""Tagging: a label for every token of a sentence, from attributes of the tokens."""
