"""The verbs in groups, as ``factorwise tag fit``: a verb is the module of its name in the group's folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Group(NamedTuple):
    """Verbs that belong together.

    text
        What they are for.
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
            "explain": "Say why two concepts match, or do not.",
            "fit": "Learn from two ontologies and known matches.",
            "score": "Compare the matches found with the true ones.",
        },
    ),
    "coref": (
        "Cluster the mentions of documents into entities: coreference.",
        "factorwise coref fit train.jsonl --model coref.fw",
        {
            "apply": "Find the entities that the mentions of documents speak of.",
            "fit": "Learn from documents whose entities are known.",
            "mentions": "Learn to find mentions in plain text.",
            "score": "Compare the entities found with the true ones.",
        },
    ),
    "flows": (
        "Find how the members of a population move between places, from counts alone.",
        "factorwise flows fit counts.csv --features pairs.csv --model birds.fw",
        {
            "apply": "Find the flows behind counts.",
            "fit": "Learn from counts by time and place.",
            "score": "Compare the flows found with the true ones.",
        },
    ),
    "generate": (
        "Make up data whose truth is known, of any size.",
        "factorwise generate authors -n 1e5 -o authors.parquet",
        {
            "authors": "Author mentions as a bibliography has them.",
        },
    ),
    "resolve": (
        "Find the records of tables that are of the same entity: deduplication and linkage.",
        "factorwise resolve apply people.csv --id id -o entities.csv",
        {
            "add": "Add new records to a store.",
            "apply": "Find the entities of records, with or without a model.",
            "blocks": "Count blocks and pairs before anything is compared.",
            "explain": "Show what keeps two records together or apart.",
            "export": "Write the entities of a store, or other clusterings of it.",
            "fit": "Learn from records whose entities are known.",
            "history": "Show what happened to an entity of a store.",
            "init": "Make a store: records, and the entities found in them.",
            "lookup": "Find the entity of a store that a record is of.",
            "score": "Compare the entities found with the true ones.",
            "undo": "Take the last change of a store back.",
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
