"""The citations of Anzaroot and McCallum as chains see them: parts, features, and other ways to predict.

Used by `bethe_citations`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from factorwise.apps.tagging import ChainCRF
from factorwise.apps.tagging.cross_fitting import JudgedSentences, cross_fitted
from factorwise.apps.tagging.features.encoders import as_sentences
from factorwise.apps.tagging.global_constraints import ConstraintSet
from factorwise.apps.tagging.global_tagger import (
    LEARNING,
    TAGGING,
    GlobalTagger,
    likelihood_of,
    node_scores,
    transition_table,
)
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.apps.tagging.training import EncodedSentences
from factorwise.datasets.local import find_data
from factorwise.inference.exact.chain import chain_k_best
from factorwise.inference.message_passing.projection import SequenceEnergy, project_sequences
from factorwise.kernels.compile.threads import Team
from factorwise.learning.chains.structure import Supervision
from factorwise.learning.projections.learning import learn_energies
from factorwise.learning.projections.likelihood import Differentiate, SequenceLikelihood
from factorwise.learning.projections.scores import GivenScores, LinearScores
from factorwise.metrics.sequence import SpanCounter
from factorwise.types import Floats, Ints

THREADS = 2
WORD = ["w", "lower", "prefix1", "prefix2", "prefix3", "prefix4", "suffix1", "suffix2", "suffix3", "suffix4"]
FLAGS = ["shape", "short_shape", "is_digit", "is_title", "is_upper"]
TEMPLATES = "\n".join(
    [
        "bias",
        "first",
        "last",
        "w[0]",
        *(f"{name}(w[0])" for name in WORD[1:] + FLAGS),
        *(f"{name}(w[{k}])" for k in (-3, -2, -1, 1, 2, 3) for name in ("lower", "short_shape")),
        "lower(w[-1])|lower(w[0])",
        "lower(w[0])|lower(w[1])",
        "lower(w[-2])|lower(w[-1])",
        "short_shape(w[-1])|short_shape(w[0])",
        "short_shape(w[0])|short_shape(w[1])",
        "short_shape(w[-1])|short_shape(w[0])|short_shape(w[1])",
        "shape(w[-1])|shape(w[0])|shape(w[1])",
    ]
)
Citations = tuple[list[list[str]], list[list[str]]]


def read(part: str) -> Citations:
    lines = (find_data("umass_citation") / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [record["tokens"] for record in records], [record["labels"] for record in records]


def joined(*parts: Citations) -> Citations:
    return [one for part in parts for one in part[0]], [one for part in parts for one in part[1]]


def chain(citations: Citations) -> ChainCRF:
    crf = ChainCRF(templates=TEMPLATES, c1=0.05, c2=0.05, max_iterations=150, n_jobs=THREADS)
    return crf.fit(*citations)


class Part:
    """Citations encoded for a chain."""

    def __init__(self, crf: ChainCRF, citations: Citations) -> None:
        tokens, labels = citations
        self.rows, self.start = crf.encoder_.encode(as_sentences(tokens))
        known = list(crf.classes_)
        self.names = known + sorted({label for each in labels for label in each}.difference(known))
        number = {name: code for code, name in enumerate(self.names)}
        self.truth = np.array([number[label] for each in labels for label in each], dtype=np.int32)
        self.counter = SpanCounter(self.names)

    def f1(self, path: Ints) -> float:
        """Return the micro-averaged F1 of segments, in percent."""
        return 100.0 * self.counter.scores(self.truth, path.astype(np.int32), self.start).micro.f1

    def judged(self, tagger: ChainTagger) -> JudgedSentences:
        """Return the citations to a chain that has not learned from them."""
        return JudgedSentences(tagger, self.rows, self.start, self.truth)


def cross_fitted_by(crf: ChainCRF, citations: Citations) -> list[JudgedSentences]:
    """Return the citations that a chain was trained on, each with a chain trained on others."""
    part = Part(crf, citations)
    sentences = EncodedSentences(part.rows, part.start, Supervision(part.truth), crf.encoder_.slots())
    return cross_fitted(sentences, list(crf.classes_), crf.training_config(), threads=THREADS)


def with_constraints(tagger: ChainTagger, constraints: ConstraintSet) -> GlobalTagger:
    return GlobalTagger(tagger.classes, tagger.features, tagger.structure, tagger.weights, constraints)


def learned_again(
    tagger: GlobalTagger, judged: Sequence[JudgedSentences], dearest: int, way: Differentiate, team: Team
) -> tuple[GlobalTagger, float]:
    """Learn the costs of the dearest constraints alone, from zero, by one pass; return also the seconds."""
    few = ConstraintSet(tagger.constraints.constraints[:dearest])
    began = time.perf_counter()
    config = replace(LEARNING, differentiate=way, rounds=1)
    fit = learn_energies(likelihood_of(few, judged), config=config, team=team)
    return with_constraints(tagger, few.with_weights(fit.weights)), time.perf_counter() - began


def learned_jointly(
    tagger: GlobalTagger, judged: Sequence[JudgedSentences], part: Part, team: Team, *, energies: bool = True
) -> Ints:
    """Learn scores of labels and transitions on top of the chain's together with the costs; predict.

    energies
        Without them, the chain is given these scores alone: what they do for it by themselves.
    """
    given = likelihood_of(tagger.constraints, judged)
    scores = given.base
    assert isinstance(scores, GivenScores)
    base = LinearScores(np.ones((int(scores.start[-1]), 1)), scores)
    both = SequenceLikelihood(base, given.truth, given.measurement, given.losses)
    begin = tagger.constraints.weights if energies else 0.0
    fit = learn_energies(both, config=LEARNING, weights=begin, held=not energies, team=team)
    size = base.labels
    label, transition = fit.parameters[:size], fit.parameters[size:].reshape(size, size)
    found = project_sequences(
        [rows + label for rows in node_scores(tagger, part.rows, part.start, None)],
        transition_table(tagger) + transition,
        SequenceEnergy(given.measurement, given.losses, fit.weights),
        tolerance=TAGGING.tolerance,
        max_iterations=TAGGING.max_iterations,
        team=team,
    )
    return found.best(team)


def soft_dd(tagger: GlobalTagger, part: Part, rounds: int = 30) -> Ints:
    """Penalised MAP by subgradients of the dual: a best path, its measurements, a step of the prices.

    Implements: vilnis2015bethe, Eq. 18 and 19.
    """
    nodes, edge = node_scores(tagger, part.rows, part.start, None), transition_table(tagger)
    energy = energy_of(tagger)
    weights, target = energy.weights, energy.losses.target
    paths = []
    for scores in nodes:
        length, labels = scores.shape
        measurement = energy.measurement.of_length(length).widened(length * labels + (length - 1) * labels**2)
        shift, best, least = np.zeros(len(weights)), None, np.inf
        for step in range(rounds):
            moved = measurement.adjoint(shift)
            node = scores - moved[: scores.size].reshape(scores.shape)
            edges = edge - moved[scores.size :].reshape(-1, labels, labels)
            path = np.array(chain_k_best(node, edges if length > 1 else edge, 1)[0].values)
            measured = energy.measurement.of_paths(path, np.array([0, length]))[0]
            cost = _penalty(weights, target, measured) - _score(scores, edge, path)
            if cost < least:
                best, least = path, cost
            slope = measured - target  # the dual moves prices of hinges between minus the weight and zero
            after = np.clip(shift + 1.0 / (1.0 + step) * slope, -weights, 0.0)
            if np.abs(after - shift).max(initial=0.0) < 1e-9:
                break
            shift = after
        paths.append(best)
    return np.concatenate([path for path in paths if path is not None])


def _penalty(weights: Floats, target: Floats, measured: Floats) -> float:
    return float(weights @ np.maximum(target - measured, 0.0))


def _score(scores: Floats, edge: Floats, path: Ints) -> float:
    return float(scores[np.arange(len(path)), path].sum() + edge[path[:-1], path[1:]].sum())


def energy_of(tagger: GlobalTagger) -> SequenceEnergy:
    return tagger.constraints.energy([str(label) for label in tagger.classes])


def inputs_of(tagger: GlobalTagger, part: Part) -> tuple[list[Floats], Floats, SequenceEnergy]:
    """Return what `project_sequences` takes."""
    nodes = node_scores(tagger, part.rows, part.start, None)
    return nodes, transition_table(tagger), energy_of(tagger)
