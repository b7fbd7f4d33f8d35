"""``factorwise tag fit``: train a tagger on a column file and save it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit
from factorwise.cli.report_sections import report_options
from factorwise.cli.tag.options import ColumnNumbers, NumberList, layout_options

#: Names and a default that the tagger knows, listed here too: its own modules load the compiler.
ALGORITHMS = (
    "lbfgs",
    "cg",
    "newton-cg",
    "gradient-descent",
    "coordinate-descent",
    "l2sgd",
    "adagrad",
    "ap",
    "pa",
    "arow",
)
SCHEMES = ("BIO", "IOB2", "IOB1", "IOE2", "BIOES", "IOBES", "BILOU")
FOLDS = 5


def _option(*names: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(*names, **settings)


@verb(example="factorwise tag fit train.txt --model chunks.fw --held-out-share 0.1 --patience 10")
@click.argument("train", metavar="TRAIN")
@path_option("--model", required=True, metavar="MODEL.fw", help="Where to save the tagger.")
@_option("--label-column", type=int, default=-1, help="Column of the labels, from either end.")
@_option(
    "--columns",
    type=ColumnNumbers(),
    metavar="0,1",
    help="Columns to make features of.  [default: all but the labels]",
)
@_option("--column-names", metavar="w,p", help="Names of these columns in your templates.  [default: w,p]")
@path_option(
    "--templates",
    metavar="FILE",
    help="Feature templates, one a line, such as w[-1]|w[0].  [default: a set by the number of columns]",
)
@_option(
    "--number-columns",
    type=ColumnNumbers(),
    metavar="2,3",
    help="Columns that hold numbers, such as a word vector.",
)
@path_option(
    "--gazetteer",
    multiple=True,
    metavar="FILE",
    help="Phrases of one kind, one a line; can be given often. The model keeps them.",
)
@path_option(
    "--word-classes",
    multiple=True,
    metavar="FILE.tsv",
    help="Classes of words, as `tag classes` writes them, or the paths of Brown clustering.",
)
@_option("--label-unknown", metavar="LABEL", help="Label that says that a token's label is not known.")
@layout_options
@_option("--algorithm", type=click.Choice(ALGORITHMS), default="lbfgs", help="How to train.")
@_option(
    "--c1",
    type=NumberList(),
    metavar="NUMBER",
    help="Price of absolute weights.  [default: 0.1, or 0 with --c2]",
)
@_option("--c2", type=NumberList(), metavar="NUMBER", help="Price of squared weights.  [default: 0.1]")
@_option("--variance", type=NumberList(), metavar="NUMBER", help="Of a Gaussian prior, instead of --c2.")
@_option("--scale", type=NumberList(), metavar="NUMBER", help="Of a Laplacian prior, instead of --c1.")
@_option(
    "--cross-validate",
    type=Whole(min=2),
    metavar="FOLDS",
    help="Choose among several values of the prior, given with commas, by the score of held-out folds.",
)
@_option("--max-iterations", type=Whole(min=1), help="Iterations or passes at most.")
@_option("--epsilon", type=Real(min=0), help="Stop at this gradient norm, relative to weights.")
@_option("--period", type=Whole(min=1), help="Iterations over which --delta looks back.")
@_option("--delta", type=Real(min=0), help="Stop at this relative improvement.")
@_option("--order", type=Whole(1, 2), default=1, help="Labels looked back at.")
@_option(
    "--scheme",
    type=click.Choice(SCHEMES, case_sensitive=False),
    help="Make only label sequences possible that are valid in this scheme.",
)
@_option("--forbid", multiple=True, metavar="A,B", help="B must not follow A; can be given often.")
@_option(
    "--global",
    metavar="FILE.toml",
    help="Constraints on whole sentences, or 'auto' for all that can be said. Their weights are learned.",
)
@_option(
    "--global-folds",
    type=Whole(min=0),
    metavar="N",
    help="Learn these weights from N parts of TRAIN, each scored by a tagger trained on the others, and from"
    " held-out sentences if there are any; 0: from these alone, a tenth of TRAIN unless said otherwise."
    f"  [default: {FOLDS}]",
)
@_option(
    "--min-freq",
    type=Real(min=0),
    default=0.0,
    help="Leave out pairs of attribute and label seen less often.",
)
@_option("--all-possible-states", is_flag=True, help="Weights for pairs that training does not show, too.")
@_option("--all-possible-transitions", is_flag=True, help="The same for pairs of labels.")
@_option(
    "--class-weight",
    multiple=True,
    metavar="LABEL=2.5",
    help="How much more the label counts, or 'balanced'; can be given often.",
)
@_option("--held-out", metavar="FILE", help="Sentences to score while training.")
@_option(
    "--held-out-share",
    type=Real(0, 1, min_open=True, max_open=True),
    help="The same, as a random share of the training sentences.",
)
@_option(
    "--patience",
    type=Whole(min=1),
    metavar="N",
    help="Stop after N iterations without a better held-out score, and keep the best.",
)
@path_option(
    "--warm-start",
    metavar="OLD.fw",
    help="Begin with the weights of another tagger, and keep what only its training data had.",
)
@_option(
    "--precision",
    type=click.Choice(["single", "double"]),
    default="single",
    help="Of label scores while training; sums are double anyway.",
)
@report_options
def command(options: Options, **given: Any) -> None:
    """Train a tagger on the column file TRAIN: a token a line, a blank line after each sentence.

    The last column is the label, the others make features. '-' reads standard input. The penalty on the
    weights is c1 * sum |w| + c2 * sum w^2. Held-out sentences are scored by span F1, or by token accuracy
    where labels name no spans. The model is written whole or not at all.
    """
    from factorwise.cli.tag.request import TagRequest
    from factorwise.cli.tag.summary import summary_lines
    from factorwise.cli.tag.training import fit

    request = TagRequest(global_constraints=given.pop("global"), **given)
    request.check()
    document = fit(options, request)
    emit(document, summary_lines(document), as_json=options.json)
