"""``factorwise tag``: train a tagger on column files, apply it, score it, look inside."""

from __future__ import annotations

from factorwise.cli.group import Registry, verb_group

VERBS: Registry = {
    "apply": ("factorwise.cli.tag.apply", "Label the tokens of a column file."),
    "cite": ("factorwise.cli.tag.cite", "Read references into CSL-JSON or BibTeX."),
    "classes": ("factorwise.cli.tag.classes", "Make word classes from unlabelled text."),
    "fit": ("factorwise.cli.tag.fit", "Train a tagger on a column file."),
    "inspect": ("factorwise.cli.tag.inspect", "Show the strongest features and transitions of a tagger."),
    "score": ("factorwise.cli.tag.score", "Score the labels predicted in a column file."),
}

command = verb_group(
    "tag",
    "Label the tokens of sentences with conditional random fields.",
    VERBS,
    example="factorwise tag fit train.txt --model chunks.fw",
)
