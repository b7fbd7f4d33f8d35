"""What ``factorwise tag fit`` does: train a tagger on a column file and save it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from factorwise.apps.tagging.config import TrainingConfig
from factorwise.apps.tagging.constraints import LabelConstraints
from factorwise.apps.tagging.cross_fitting import PriorScores, cross_validate, judged_sentences
from factorwise.apps.tagging.features.encoders import ColumnEncoder
from factorwise.apps.tagging.global_tagger import constrained
from factorwise.apps.tagging.model_file import read_tagger, write_tagger
from factorwise.apps.tagging.progress import TrainingBar
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.apps.tagging.training import EncodedSentences, HeldOutSentences, Step, train
from factorwise.apps.tagging.warm import EarlierFit, continued
from factorwise.cli.files import files_among, shown
from factorwise.cli.options import Options
from factorwise.cli.output import notice
from factorwise.cli.progress import Clock, show_progress, tell_compiling
from factorwise.cli.report_sections import Page
from factorwise.cli.tag.data import (
    SentenceSource,
    check_constraints,
    check_same_columns,
    constraints,
    from_another_file,
    supervision,
    taken_apart,
)
from factorwise.cli.tag.inspect import describe, weights_by_template
from factorwise.cli.tag.options import read_table
from factorwise.cli.tag.prediction import Predictions
from factorwise.cli.tag.report import write_fit_report
from factorwise.cli.tag.request import TagRequest
from factorwise.cli.tag.scores import JudgedLabels
from factorwise.cli.tag.summary import held_out_scores, summary
from factorwise.io.models.provenance import provenance
from factorwise.kernels.compile.threads import Team
from factorwise.learning.likelihood.priors import Prior

SHOWN = 500  # weights in a report
HELD_OUT_SHARE = 0.1  # of the training sentences, where constraints are to be learned and nothing is said


def fit(options: Options, request: TagRequest) -> dict[str, Any]:
    """Train, save, and return the summary."""
    priors = request.priors()
    config = request.training_config(priors[0], options.seed)
    weights, pairs = request.class_weights(), request.forbidden_pairs()
    before = None if request.warm_start is None else read_tagger(request.warm_start)
    clock = Clock()
    with clock.part("reading"):
        source = _source(request, request.train)
        encoder, further = continued(request.encoder(source.features), before and before.encoder)
        other = None if request.held_out is None else _source(request, request.held_out)
        if other is not None:
            check_same_columns(source, other)
        labels, codes = source.labels(request.label_unknown, before.tagger.classes if before else ())
        _remark(options, request, source, labels)
        known = supervision(codes, labels, weights)
        rules = constraints(labels, request.scheme, pairs)
        check_constraints(rules, labels, source, known)
        candidates = request.candidates(labels)
    tell_compiling(options)
    with clock.part("features"):
        rows, start = encoder.fit_columns(source.columns(), source.file.start, further=further)
        sentences = EncodedSentences(rows, start, known, encoder.slots())
        unknown = candidates is not None and not candidates.learned
        apart = unknown and request.folds == 0
        sentences, held_out = _held_out(options, request, sentences, other, encoder, labels, apart)
    trials: list[PriorScores] = []
    if request.cross_validate is not None:
        with clock.part("cross-validation"):
            trials = _cross_validate(options, request, sentences, labels, config, priors, rules)
        config = replace(config, prior=max(trials, key=lambda trial: trial.mean).prior)
    with (
        clock.part("training"),
        TrainingBar(config.max_iterations, shown=show_progress(options)) as bar,
    ):
        trained = train(
            sentences,
            labels,
            config,
            constraints=rules,
            held_out=held_out,
            before=before and EarlierFit.of(before.tagger, before.encoder, encoder, labels),
            watch=bar.update,
            threads=options.threads,
        )
    learned = None
    if candidates is not None:
        with clock.part("constraints"):
            taught_by = judged_sentences(
                trained,
                held_out,
                sentences,
                labels,
                config,
                folds=request.folds if unknown else 0,
                constraints=rules,
                threads=options.threads,
            )
            learned = constrained(trained.tagger, candidates, taught_by, options.threads)
        trained = replace(trained, tagger=learned.tagger)
    with clock.part("writing"):
        settings = _settings(request, source, config)
        record = provenance(configuration=settings, seed=options.seed, data=_files(request))
        write_tagger(request.model, trained.tagger, encoder, settings, record)
    judged = _judged(trained.tagger, held_out, options.threads)
    given = None if other is None else len(other.file)
    scores = held_out_scores(trained, learned, judged, given)
    document = summary(
        request.model, source, encoder, config, trained, held_out, scores, trials, learned, clock
    )
    document["report"] = _report(options, request, document, trained.steps, judged)
    return document


def _report(
    options: Options,
    request: TagRequest,
    document: dict[str, Any],
    steps: Sequence[Step],
    judged: JudgedLabels | None,
) -> dict[str, Any] | None:
    """Write the page that was asked for, if any, and return its entry in the summary."""
    if request.report is None:
        return None
    saved = read_tagger(request.model)
    return write_fit_report(
        Page(request.report, options, _files(request)),
        document,
        steps,
        describe(saved, request.model, SHOWN, None),
        weights_by_template(saved),
        judged,
        values=not request.no_values,
    )


def _remark(options: Options, request: TagRequest, source: SentenceSource, labels: Sequence[str]) -> None:
    """Say so where the file is probably to be read in another way."""
    if len(labels) == 1:
        notice(
            options,
            f"all tokens of {source.name} have the label {labels[0]!r}: if that is no column of labels, name"
            " another with --label-column.",
        )
    words = source.file.column(source.features[0])[source.file.start[:-1]]
    if request.comment is None and np.mean(words == "#") > 0.5:
        notice(
            options,
            f"most sentences of {source.name} begin with '#': if these are comments, say with --comment TEXT"
            " what they begin with.",
        )


def _judged(tagger: ChainTagger, held_out: HeldOutSentences | None, threads: int) -> JudgedLabels | None:
    """Label the held-out sentences by the tagger that is saved."""
    if held_out is None:
        return None
    with Team(threads) as team:
        given = Predictions(tagger, held_out.rows, held_out.start, team)
        return JudgedLabels(tagger.classes, held_out.truth, given.codes, held_out.start, given.probability)


def _source(request: TagRequest, path: str) -> SentenceSource:
    file = read_table(path, request.layout)
    return SentenceSource.of(file, shown(path), request.columns, request.label_column)


def _held_out(
    options: Options,
    request: TagRequest,
    sentences: EncodedSentences,
    other: SentenceSource | None,
    encoder: ColumnEncoder,
    labels: Sequence[str],
    apart: bool,
) -> tuple[EncodedSentences, HeldOutSentences | None]:
    """Return the sentences to learn from and those to score on.

    apart
        Whether some must be held out, whatever the request says.
    """
    if other is not None:
        unknown, patience = request.label_unknown, request.patience
        tell = partial(notice, options)
        return sentences, from_another_file(other, encoder, labels, unknown, patience, tell)
    if request.held_out_share is not None or apart:
        share = request.held_out_share or HELD_OUT_SHARE
        return taken_apart(sentences, share, options.seed, request.patience)
    return sentences, None


def _settings(request: TagRequest, source: SentenceSource, config: TrainingConfig) -> dict[str, Any]:
    """Return what the model file must know of how it was trained, and of the columns it reads."""
    return {
        "training": config.as_dict(),
        "constraints": {
            "scheme": request.scheme,
            "forbid": list(request.forbid),
            "global": request.global_constraints,
        },
        "class_weight": list(request.class_weight),
        "columns": {
            "features": list(source.features),
            "label": source.label,
            "like_labels": source.like_labels(),
            "all": source.file.n_columns,
        },
        "layout": asdict(request.layout),
    }


def _files(request: TagRequest) -> list[str | Path]:
    """Return the files that the model was made from, as far as they can be read again."""
    return files_among(request.files)


def _cross_validate(
    options: Options,
    request: TagRequest,
    sentences: EncodedSentences,
    labels: Sequence[str],
    config: TrainingConfig,
    priors: Sequence[Prior],
    rules: LabelConstraints,
) -> list[PriorScores]:
    """Score each prior on held-out folds, with a bar."""
    folds, hidden = request.cross_validate or 0, not show_progress(options)
    with tqdm(total=folds * len(priors), desc="cross-validation", unit="fit", disable=hidden) as bar:
        return cross_validate(
            sentences,
            labels,
            config,
            priors,
            folds=folds,
            constraints=rules,
            threads=options.threads,
            on_fit=bar.update,
        )
