"""Read ontologies, and read and write their alignments, in exchange formats."""
