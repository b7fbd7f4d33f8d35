"""``factorwise generate``: make up data whose truth is known."""

from __future__ import annotations

from factorwise.cli.group import Registry, verb_group

VERBS: Registry = {
    "authors": ("factorwise.cli.generate.authors", "Author mentions as a bibliography has them."),
}

command = verb_group(
    "generate",
    "Make up data whose truth is known, of any size.",
    VERBS,
    example="factorwise generate authors -n 1e5 -o authors.parquet",
)
