"""How good a prediction is: of spans and tokens, of clusterings, of alignments."""
