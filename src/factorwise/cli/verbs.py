"""Verbs in groups, such as ``factorwise tag fit``: each is a module in its group's folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Group(NamedTuple):
    """A group of verbs.

    text
        The purpose of the group.
    example
        A full command line, shown at the end of the help.
    verbs
        The name of each verb, the module that defines its ``command``, and its line in the help.
    """

    text: str
    example: str
    verbs: Mapping[str, tuple[str, str]]


_TEXTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "align": (
        "Match the concepts of two ontologies or taxonomies.",
        "factorwise align fit mouse.owl human.owl --reference known.tsv --model anatomy.fw",
        {
            "apply": "Match the concepts of two ontologies.",
            "explain": "Explain why two concepts match, or do not.",
            "fit": "Learn from two ontologies and known matches.",
            "score": "Compare predicted matches with the true ones.",
        },
    ),
    "coref": (
        "Cluster the mentions of documents into entities: coreference.",
        "factorwise coref fit train.jsonl --model coref.fw",
        {
            "apply": "Find the entities to which the mentions of documents refer.",
            "fit": "Learn from documents whose entities are known.",
            "mentions": "Learn to find mentions in plain text.",
            "score": "Compare predicted entities with the true ones.",
        },
    ),
    "flows": (
        "Find how the members of a population move between places, from counts alone.",
        "factorwise flows fit counts.csv --features pairs.csv --model birds.fw",
        {
            "apply": "Find the flows behind counts.",
            "fit": "Learn from counts by time and place.",
            "score": "Compare predicted flows with the true ones.",
        },
    ),
    "generate": (
        "Generate data of any size whose truth is known.",
        "factorwise generate authors -n 1e5 -o authors.parquet",
        {
            "authors": "Author mentions of a bibliography.",
        },
    ),
    "resolve": (
        "Find the records of tables that describe the same entity: deduplication and linkage.",
        "factorwise resolve apply people.csv --id id -o entities.csv",
        {
            "add": "Add new records to a store.",
            "apply": "Find the entities of records, with or without a model.",
            "blocks": "Count blocks and pairs before anything is compared.",
            "explain": "Show the evidence for and against two records being one entity.",
            "export": "Write the entities of a store, or other clusterings of it.",
            "fit": "Learn from records whose entities are known.",
            "history": "Show what happened to an entity of a store.",
            "init": "Create a store of records and the entities found in them.",
            "lookup": "Find the entity of a store to which a record belongs.",
            "score": "Compare predicted entities with the true ones.",
            "undo": "Undo the last change of a store.",
        },
    ),
    "tag": (
        "Label the tokens of sentences with conditional random fields.",
        "factorwise tag fit train.txt --model chunks.fw",
        {
            "apply": "Label the tokens of a column file.",
            "cite": "Read references into CSL-JSON or BibTeX.",
            "classes": "Make word classes from unlabelled text.",
            "fit": "Train a tagger on a column file.",
            "inspect": "Show the strongest features and transitions of a tagger.",
            "score": "Score the labels predicted in a column file.",
        },
    ),
}

GROUPS = {
    group: Group(
        text, example, {name: (f"factorwise.cli.{group}.{name}", line) for name, line in lines.items()}
    )
    for group, (text, example, lines) in _TEXTS.items()
}
