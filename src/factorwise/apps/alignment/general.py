"""Pretrained weights for any two ontologies, and their adaptation without labels by self-training.

The weights in ``general.json`` were fitted by logistic regression on the candidate pairs of open tracks
(``experiments/alignment_tracks.py --write`` writes the file). For two new ontologies they are the mean of a
Gaussian prior: their confident matches serve as a partial reference, on which a logistic regression is fitted
under this prior. With known matches, SampleRank starts from the adapted weights.
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

SURE = 0.9  # least probability of a match that is used as a label in self-training
NEIGHBOR = 0.8  # least probability of a match that is used as an anchor
ROUNDS = 2  # rounds of self-training
DRAWN = 30.0  # precision of the Gaussian prior around the pretrained weights, in self-training
SPREAD = 3.0  # precision of the Gaussian prior around zero, in pretraining


@cache
def general_weights() -> Mapping[str, float]:
    """Return the pretrained weights of the package, by feature name."""
    text = files("factorwise.apps.alignment").joinpath("general.json").read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(text)
    return weights


def learn_general_weights(
    tracks: Sequence[tuple[ConceptPairs, NDArray[np.bool_]]],
) -> dict[str, float]:
    """Fit weights to the labelled candidate pairs of several tracks.

    All tracks have the same total weight, whatever their size.
    """
    features = np.vstack([candidates.features for candidates, _ in tracks])
    true = np.concatenate([matches for _, matches in tracks])
    size = len(true) / len(tracks)
    counts = np.concatenate([np.full(len(matches), size / len(matches)) for _, matches in tracks])
    weights = fit_logistic(features, true, np.zeros(features.shape[1]), SPREAD, counts)
    return dict(zip(tracks[0][0].names, weights.round(4).tolist(), strict=True))


def self_trained(candidates: ConceptPairs, general: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return self-trained weights for two ontologies without known matches.

    general : float64[features]
        The initial weights, which are also the mean of the prior.
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
    """Return the indices of one-to-one matches with a probability of at least ``least``."""
    scores = candidates.features @ weights
    best = best_matching(candidates, scores)
    return np.asarray(best[expit(scores[best]) >= least])


def adapted_pairs(
    left: Ontology, right: Ontology, known: Mapping[str, float]
) -> tuple[ConceptPairs, NDArray[np.float64]]:
    """Return the candidate pairs of two ontologies, and weights adapted to them without known matches.

    The confident matches of a first run of self-training are the anchors of the second.

    known
        Initial weights by feature name; other weights are zero.
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
    """Return the MAP weights of a logistic regression under a Gaussian prior.

    center, precision
        Mean and inverse variance of the prior.
    counts : float64[pairs]
        Weight of each pair; None for 1.
    """
    sign = np.where(true, 1.0, -1.0)
    often = np.ones(len(sign)) if counts is None else counts

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (features @ weights)
        away = weights - center
        value = -(often * log_expit(margin)).sum() + 0.5 * precision * (away @ away)
        return float(value), precision * away - features.T @ (often * sign * expit(-margin))

    return np.asarray(minimize(loss, center, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x)
