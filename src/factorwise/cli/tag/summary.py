"""What ``factorwise tag fit`` reports at its end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factorwise.apps.tagging.config import TrainingConfig
from factorwise.apps.tagging.cross_fitting import PriorScores
from factorwise.apps.tagging.features.encoders import ColumnEncoder
from factorwise.apps.tagging.global_tagger import LearnedConstraints
from factorwise.apps.tagging.training import HeldOutSentences, SpanMeasure, Step, Trained
from factorwise.cli.output import aligned
from factorwise.cli.progress import Clock, written_lines
from factorwise.cli.tag.data import SentenceSource
from factorwise.cli.tag.request import WITHOUT_PRIOR
from factorwise.cli.tag.scores import JudgedLabels


def summary(
    model: Path,
    source: SentenceSource,
    encoder: ColumnEncoder,
    config: TrainingConfig,
    trained: Trained,
    held_out: HeldOutSentences | None,
    scores: dict[str, Any] | None,
    trials: Sequence[PriorScores],
    learned: LearnedConstraints | None,
    clock: Clock,
) -> dict[str, Any]:
    """Return what was done as JSON values.

    scores
        Those of the held-out sentences, as `held_out_scores` returns them.
    """
    tagger = trained.tagger
    last = trained.steps[-1] if trained.steps else None
    prior = None if config.algorithm in WITHOUT_PRIOR else config.prior
    return {
        "model": {"file": model.name, "bytes": model.stat().st_size},
        "data": {
            "sentences": len(source.file),
            "tokens": source.file.n_tokens,
            "columns": list(source.features),
            "labels": len(tagger.classes),
            "attributes": encoder.width,
        },
        "weights": {
            "all": len(tagger.weights),
            "active": int(np.count_nonzero(tagger.weights)),
            "transitions": len(tagger.transition_weights),
        },
        "training": {
            "algorithm": config.algorithm,
            "c1": prior and prior.l1,
            "c2": prior and prior.l2,
            "order": config.order,
            "iterations": trained.n_iter,
            "objective": trained.objective if math.isfinite(trained.objective) else None,
            "gradient_norm": last.gradient_norm if last else None,
            "converged": trained.converged,
            "message": _ending(trained, held_out),
        },
        "cross_validation": _choice(trials, SpanMeasure.of(tagger.classes).name),
        "held_out": scores,
        "constraints": _constraints(learned),
        **clock.cost(),
    }


def _choice(trials: Sequence[PriorScores], measure: str) -> dict[str, Any] | None:
    if not trials:
        return None
    return {
        "measure": measure,
        "folds": len(trials[0].scores),
        "priors": [
            {
                "c1": trial.prior.l1,
                "c2": trial.prior.l2,
                "mean": trial.mean,
                "spread": trial.spread,
                "scores": list(trial.scores),
            }
            for trial in trials
        ],
    }


def _constraints(learned: LearnedConstraints | None) -> dict[str, Any] | None:
    """Return how many constraints on whole sentences there were, and those that were kept."""
    if learned is None:
        return None
    return {"candidates": learned.candidates, "kept": learned.constraints.to_json()}


def held_out_scores(
    trained: Trained,
    learned: LearnedConstraints | None,
    judged: JudgedLabels | None,
    given: int | None,
) -> dict[str, Any] | None:
    """Return how well the tagger that was saved does on held-out sentences, None if there are none.

    judged
        These sentences, labelled by it.
    given
        How many sentences were to be held out, where they have a file of their own.
    """
    if judged is None:
        return None
    measure, sentences = SpanMeasure.of(trained.tagger.classes), len(judged.start) - 1
    return {
        "sentences": sentences,
        "left_out": 0 if given is None else given - sentences,
        "tokens": len(judged.truth),
        "measure": measure.name,
        "score": measure.score(judged.truth, judged.labels, judged.start),
        "score_without_constraints": None if learned is None else trained.score,
    }


def _best(trained: Trained) -> Step:
    """Return the first iteration with the best held-out score."""
    return max(trained.steps, key=lambda step: -1.0 if step.score is None else step.score)


def _ending(trained: Trained, held_out: HeldOutSentences | None) -> str:
    """Say why training ended; it does not know itself that patience did."""
    patience = None if held_out is None else held_out.patience
    if patience is None or trained.converged or trained.n_iter < _best(trained).iteration + patience:
        return trained.message
    return f"no better held-out score in {patience} iterations"


def summary_lines(document: dict[str, Any]) -> Iterator[str]:
    """Write the summary for people."""
    data, weights, training = document["data"], document["weights"], document["training"]
    objective = training["objective"]
    rows = [
        ("data", f"{data['sentences']} sentences, {data['tokens']} tokens, {data['labels']} labels"),
        ("attributes", str(data["attributes"])),
        ("weights", f"{weights['all']}, {weights['active']} active, {weights['transitions']} of transitions"),
        ("training", _training_text(training)),
        ("stopped", training["message"]),
        ("objective", "not finite" if objective is None else f"{objective:.4f}"),
    ]
    if document["held_out"]:
        found = document["held_out"]
        beside = f", {found['left_out']} left out" if found["left_out"] else ""
        if found["score_without_constraints"] is not None:
            beside += f"; without constraints {found['score_without_constraints']:.4f}"
        score = f"{found['measure']} {found['score']:.4f}"
        rows.append(("held out", f"{score} on {found['sentences']} sentences{beside}"))
    if document["constraints"]:
        found = document["constraints"]
        rows.append(("constraints", f"{len(found['kept'])} of use among {found['candidates']}"))
    yield from written_lines(document, rows)
    if document["cross_validation"]:
        yield from _table_of_priors(document["cross_validation"], training)


def _training_text(training: dict[str, Any]) -> str:
    prior = "" if training["c1"] is None else f"c1 = {training['c1']:g}, c2 = {training['c2']:g}, "
    return f"{training['algorithm']}, {prior}order {training['order']}, {training['iterations']} iterations"


def _table_of_priors(found: dict[str, Any], training: dict[str, Any]) -> Iterator[str]:
    yield f"{found['measure']} over {found['folds']} folds"
    rows = [("c1", "c2", "mean", "spread", "")]
    for entry in found["priors"]:
        chosen = (entry["c1"], entry["c2"]) == (training["c1"], training["c2"])
        numbers = (f"{entry['c1']:g}", f"{entry['c2']:g}", f"{entry['mean']:.4f}", f"{entry['spread']:.4f}")
        rows.append((*numbers, "chosen" if chosen else ""))
    yield from (line.rstrip() for line in aligned(rows))
