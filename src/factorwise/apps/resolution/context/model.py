"""The context model: score pairs again, given the clusters of a first, strict pass.

The records are first clustered by pair scores that are lowered by `STRICTNESS`. Every candidate pair then has
features of the clusters of its two records. Its score in context is its score without context times a slope,
plus a shift, plus the weights of the levels of these features. The search for the entities uses the scores in
context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons import Cuts
from factorwise.apps.resolution.context.features import ContextFeature, PairContext
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.clusterings.links import CLUSTER_WEIGHT, FIXED_WEIGHTS, LINK_WEIGHT, UNLINKED_WEIGHT
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.types import Ints
from factorwise.validation import as_number, check_weights

STRICTNESS = float(
    np.log(0.8 / 0.2)
)  # in the first pass, a pair with a match probability of 0.8 has a score of zero
FIRST_PASS = LinkSearch(rounds=4, extra=0)


@dataclass(frozen=True, slots=True, eq=False)
class ContextModel:
    """Weights of the levels of context features.

    features, cuts
        The features, and the thresholds of their levels.
    weights
        The shift of every link, and the weights of the levels. The unlinked pair weight and the cluster
        weight are added to those of the first pass.
    slope
        The factor of the score without context.
    """

    features: tuple[ContextFeature, ...]
    cuts: tuple[Cuts, ...]
    weights: LevelWeights
    slope: float = 1.0

    def __post_init__(self) -> None:
        check_weights("weights of the context", self.weights.values)
        check_weights("slope of the context", np.array([self.slope]))

    def shifted(self, learned: LevelWeights, unlinked: float) -> ContextModel:
        """Return the model with weights that were learned together with user-defined templates.

        learned
            The unlinked pair weight, the cluster weight, and the shift that is added to link scores.
        unlinked
            The unlinked pair weight of the first pass.
        """
        values = self.weights.values.copy()
        values[LINK_WEIGHT] += learned.link
        values[UNLINKED_WEIGHT], values[CLUSTER_WEIGHT] = learned.unlinked - unlinked, learned.cluster
        return replace(self, weights=LevelWeights(self.weights.sizes, values))

    def scores(self, context: PairContext) -> NDArray[np.float32]:
        """Return the scores of pairs in context."""
        found = np.float32(self.slope) * context.score + np.float32(self.weights.link)
        for feature, cuts, table in zip(self.features, self.cuts, self.weights.tables(), strict=True):
            found += table.astype(np.float32)[context.levels(feature, cuts)]
        return found

    def levels(self, context: PairContext) -> NDArray[np.uint8]:
        """Return the levels of all features: uint8[pairs, features]."""
        each = [context.levels(*pair) for pair in zip(self.features, self.cuts, strict=True)]
        return np.stack(each, axis=1) if each else np.zeros((len(context.score), 0), np.uint8)

    def with_pair_weights(self, pairs: LevelWeights) -> NDArray[np.float64]:
        """Return the combined weights: of links, of comparison levels, and of context features."""
        own, link = self.weights.values, pairs.values
        fixed = own[:FIXED_WEIGHTS] + link[:FIXED_WEIGHTS]
        fixed[LINK_WEIGHT] = own[LINK_WEIGHT] + self.slope * link[LINK_WEIGHT]
        return np.concatenate([fixed, self.slope * link[FIXED_WEIGHTS:], own[FIXED_WEIGHTS:]])

    def contributions(self, context: PairContext, pairs: Ints) -> list[list[tuple[str, float]]]:
        """Return the names and values that context adds to the scores of some of the pairs."""
        each = zip(self.features, self.cuts, self.weights.tables(), strict=True)
        steps = [
            [
                (f"{feature.name}, {cuts.text(level)}", float(table[level]))
                for level in context.levels(feature, cuts)[pairs].tolist()
            ]
            for feature, cuts, table in each
        ]
        found = []
        for score, *features in zip(context.score[pairs].tolist(), *steps, strict=True):
            rescaled = self.weights.link + (self.slope - 1.0) * score
            effects = sorted((step for step in features if step[1]), key=lambda step: -abs(step[1]))
            found.append([("pair score in context", rescaled), *effects])
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the slope and the features as JSON values, for a model file."""
        features = [
            {**feature._asdict(), "edges": list(cuts.edges), "size": cuts.size}
            for feature, cuts in zip(self.features, self.cuts, strict=True)
        ]
        return {"slope": self.slope, "features": features}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], weights: NDArray[np.float64]) -> ContextModel:
        """Restore a model from the result of `as_dict` and its weights."""
        entries = saved["features"]
        features = tuple(ContextFeature(one["field"], one["form"], one["measure"]) for one in entries)
        cuts = tuple(Cuts(tuple(one["edges"]), one["size"]) for one in entries)
        levels = LevelWeights(tuple(one.size for one in cuts), weights)
        return cls(features, cuts, levels, as_number("slope", saved["slope"]))
