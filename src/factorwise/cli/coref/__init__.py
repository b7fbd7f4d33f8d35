"""``factorwise coref``: learn which mentions speak of the same entity, find entities, score them."""

from __future__ import annotations

from factorwise.cli.group import Registry, verb_group

VERBS: Registry = {
    "apply": ("factorwise.cli.coref.apply", "Find the entities that the mentions of documents speak of."),
    "fit": ("factorwise.cli.coref.fit", "Learn from documents whose entities are known."),
    "mentions": ("factorwise.cli.coref.mentions", "Learn to find mentions in plain text."),
    "score": ("factorwise.cli.coref.score", "Compare the entities found with the true ones."),
}

command = verb_group(
    "coref",
    "Cluster the mentions of documents into entities: coreference.",
    VERBS,
    example="factorwise coref fit train.jsonl --model coref.fw",
)
