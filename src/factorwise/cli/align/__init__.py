"""``factorwise align``: learn which concepts of two ontologies are the same, match them, score."""
