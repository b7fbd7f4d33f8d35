"""``factorwise resolve``: which records of tables are of the same entity: learn, resolve, score, explain."""

from __future__ import annotations

from factorwise.cli.group import Registry, verb_group

VERBS: Registry = {
    "apply": ("factorwise.cli.resolve_apply", "Find the entities of records, with or without a model."),
    "blocks": ("factorwise.cli.resolve_blocks", "Count blocks and pairs before anything is compared."),
    "explain": ("factorwise.cli.resolve_explain", "Show what keeps two records together or apart."),
    "fit": ("factorwise.cli.resolve_fit", "Learn from records whose entities are known."),
    "score": ("factorwise.cli.resolve_score", "Compare the entities found with the true ones."),
}

command = verb_group(
    "resolve",
    "Find the records of tables that are of the same entity: deduplication and linkage.",
    VERBS,
    example="factorwise resolve apply people.csv --id id -o entities.csv",
)
