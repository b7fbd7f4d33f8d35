"""Weights for any two ontologies: those that come with the package, and how they adapt without labels.

The weights in ``general.json`` are those of a logistic regression over the candidate pairs of open tracks
(``experiments/alignment_tracks.py --write`` makes the file). For two new ontologies they are a Gaussian
prior: matches that they are sure of serve as a partial reference, from which a regression learns again, drawn
towards them. With known matches, SampleRank begins with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from factorwise.apps.alignment.matching import ConceptPairs, best_matching
from factorwise.io.ontologies.ontology import Ontology

SURE = 0.9  # probability from which on a match teaches others
NEIGHBOR = 0.8  # probability from which on a match speaks for its neighbors
ROUNDS = 2  # of self-training
DRAWN = 30.0  # precision of the prior of self-training, around the general weights
SPREAD = 3.0  # precision of the prior of the general weights, around zero


@cache
def general_weights() -> Mapping[str, float]:
    """Return the weights that come with the package, by the names of the features."""
    text = files("factorwise.apps.alignment").joinpath("general.json").read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(text)
    return weights


def learn_general_weights(
    tracks: Sequence[tuple[ConceptPairs, NDArray[np.bool_]]],
) -> dict[str, float]:
    """Learn weights from the candidate pairs of several tracks and whether each is a match.

    Every track counts the same, whatever its size.
    """
    features = np.vstack([candidates.features for candidates, _ in tracks])
    true = np.concatenate([matches for _, matches in tracks])
    size = len(true) / len(tracks)
    counts = np.concatenate([np.full(len(matches), size / len(matches)) for _, matches in tracks])
    weights = fit_logistic(features, true, np.zeros(features.shape[1]), SPREAD, counts)
    return dict(zip(tracks[0][0].names, weights.round(4).tolist(), strict=True))


def self_trained(candidates: ConceptPairs, general: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights that two ontologies without known matches are aligned by.

    general : float64[features]
        Weights to begin with, and to stay near.
    """
    weights = general
    for _ in range(ROUNDS):
        sure = sure_matches(candidates, weights, SURE)
        if not len(sure):
            break
        concepts = np.unique(candidates.edges[sure])
        known = np.isin(candidates.edges, concepts).any(axis=1)  # a matched concept has no other match
        true = np.zeros(len(candidates.edges), dtype=bool)
        true[sure] = True
        weights = fit_logistic(candidates.features[known], true[known], general, DRAWN)
    return weights


def sure_matches(candidates: ConceptPairs, weights: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """Return the pairs, by number, that match one to one with a probability of at least ``least``."""
    scores = candidates.features @ weights
    best = best_matching(candidates, scores)
    return np.asarray(best[expit(scores[best]) >= least])


def adapted_pairs(
    left: Ontology, right: Ontology, known: Mapping[str, float]
) -> tuple[ConceptPairs, NDArray[np.float64]]:
    """Return the candidate pairs of two ontologies, and weights for them that need no known matches.

    The neighbors of the pairs are judged by the matches that a first run of self-training is sure of.

    known
        Weights to begin with, by the names of features; others are zero.
    """
    candidates = ConceptPairs.of(left, right)
    general = np.array([known.get(name, 0.0) for name in candidates.names])
    sure = sure_matches(candidates, self_trained(candidates, general), NEIGHBOR)
    candidates = candidates.judged_by(sure)
    return candidates, self_trained(candidates, general)


def fit_logistic(
    features: NDArray[np.float64],
    true: NDArray[np.bool_],
    center: NDArray[np.float64],
    precision: float,
    counts: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the most probable weights of a logistic regression under a Gaussian prior.

    center, precision
        Mean and inverse variance of the prior.
    counts : float64[pairs]
        How often each pair counts; None: once.
    """
    sign = np.where(true, 1.0, -1.0)
    often = np.ones(len(sign)) if counts is None else counts

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (features @ weights)
        away = weights - center
        value = -(often * log_expit(margin)).sum() + 0.5 * precision * (away @ away)
        return float(value), precision * away - features.T @ (often * sign * expit(-margin))

    return np.asarray(minimize(loss, center, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x)
