"""``factorwise align``: learn which concepts of two ontologies are the same, match them, score."""

from __future__ import annotations

from factorwise.cli.group import Registry, verb_group

VERBS: Registry = {
    "apply": ("factorwise.cli.align.apply", "Match the concepts of two ontologies."),
    "explain": ("factorwise.cli.align.explain", "Say why two concepts match, or do not."),
    "fit": ("factorwise.cli.align.fit", "Learn from two ontologies and known matches."),
    "score": ("factorwise.cli.align.score", "Compare the matches found with the true ones."),
}

command = verb_group(
    "align",
    "Match the concepts of two ontologies or taxonomies.",
    VERBS,
    example="factorwise align fit mouse.owl human.owl --reference known.tsv --model anatomy.fw",
)
