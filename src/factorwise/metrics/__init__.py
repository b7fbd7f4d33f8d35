"""Metrics of predictions: of spans and tokens, of clusterings, of alignments."""
