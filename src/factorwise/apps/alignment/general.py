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

SURE = 0.9  # probability from which on a match teaches others
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
        scores = candidates.features @ weights
        best = best_matching(candidates, scores)
        sure = best[expit(scores[best]) >= SURE]
        if not len(sure):
            break
        concepts = np.unique(candidates.edges[sure])
        known = np.isin(candidates.edges, concepts).any(axis=1)  # a matched concept has no other match
        true = np.zeros(len(scores), dtype=bool)
        true[sure] = True
        weights = fit_logistic(candidates.features[known], true[known], general, DRAWN)
    return weights


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
