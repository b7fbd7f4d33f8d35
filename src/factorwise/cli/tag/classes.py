"""``factorwise tag classes``: make word classes from unlabelled text or from word vectors."""

from __future__ import annotations

from pathlib import Path

import click

from factorwise.cli.files import check_target, read_text, writing
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit
from factorwise.cli.tag.options import ColumnNumbers


@verb(example="factorwise tag classes unlabelled.txt -o classes.tsv --sizes 64,512")
@click.argument("text", metavar="TEXT", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="CLASSES.tsv", help="File to write, whole or not at all."
)
@click.option("--sizes", type=ColumnNumbers(), default="64,512", help="Numbers of classes.")
@click.option("--min-count", type=Whole(min=1), default=3, help="Leave out words seen less often.")
@click.option("--vectors", is_flag=True, help="TEXT holds word vectors: a word and its numbers a line.")
def command(
    options: Options, text: Path, output: str, sizes: tuple[int, ...], min_count: int, vectors: bool
) -> None:
    """Put the words of TEXT, a sentence a line with spaces between the words, into classes by neighbors.

    Give the result to `tag fit --word-classes CLASSES.tsv`: what a tagger learns of a word then holds for
    other words of its class, which its training data need not have.
    """
    check_target("--output", Path(output), text)
    lines = read_text(text).splitlines()
    from factorwise.apps.tagging.features.word_classes import (
        classes_of_vectors,
        learn_word_classes,
        read_vectors,
    )

    if vectors:
        classes = classes_of_vectors(*read_vectors(lines, str(text)), sizes, seed=options.seed)
    else:
        sentences = [line.split() for line in lines]
        classes = learn_word_classes(sentences, sizes, min_count=min_count, seed=options.seed)
    with writing(output) as stream:
        for word, codes in classes.items():
            stream.write("\t".join([word, *map(str, codes)]) + "\n")
    document = {"output": Path(output).name, "words": len(classes), "sizes": list(sizes)}
    told = f"{document['output']}  ({len(classes)} words in {' and '.join(map(str, sizes))} classes, written)"
    emit(document, [told], as_json=options.json)
