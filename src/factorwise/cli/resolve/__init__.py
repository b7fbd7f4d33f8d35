"""``factorwise resolve``: which records of tables are of the same entity: learn, resolve, score, explain."""

from __future__ import annotations

from factorwise.cli.group import Registry, verb_group

VERBS: Registry = {
    "add": ("factorwise.cli.resolve.add", "Add new records to a store."),
    "apply": ("factorwise.cli.resolve.apply", "Find the entities of records, with or without a model."),
    "blocks": ("factorwise.cli.resolve.blocks", "Count blocks and pairs before anything is compared."),
    "explain": ("factorwise.cli.resolve.explain", "Show what keeps two records together or apart."),
    "export": ("factorwise.cli.resolve.export", "Write the entities of a store, or other clusterings of it."),
    "fit": ("factorwise.cli.resolve.fit", "Learn from records whose entities are known."),
    "history": ("factorwise.cli.resolve.history", "Show what happened to an entity of a store."),
    "init": ("factorwise.cli.resolve.init", "Make a store: records, and the entities found in them."),
    "lookup": ("factorwise.cli.resolve.lookup", "Find the entity of a store that a record is of."),
    "score": ("factorwise.cli.resolve.score", "Compare the entities found with the true ones."),
    "undo": ("factorwise.cli.resolve.undo", "Take the last change of a store back."),
}

command = verb_group(
    "resolve",
    "Find the records of tables that are of the same entity: deduplication and linkage.",
    VERBS,
    example="factorwise resolve apply people.csv --id id -o entities.csv",
)
