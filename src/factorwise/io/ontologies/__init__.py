"""Ontologies and their alignments, in the formats in which they are exchanged."""
