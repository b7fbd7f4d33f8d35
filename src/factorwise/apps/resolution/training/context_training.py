"""Train the context model: boosted tables of cluster features on top of out-of-fold pair scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from factorwise.apps.resolution.comparisons import Cuts
from factorwise.apps.resolution.context.features import PairContext, context_features
from factorwise.apps.resolution.context.model import ContextModel
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.training.boosted_tables import Boosting, boost_tables
from factorwise.apps.resolution.training.examples import PairExamples
from factorwise.apps.resolution.training.folds import HeldOutRecords
from factorwise.apps.resolution.training.pair_regression import fit_slope_and_shift
from factorwise.kernels.clusterings.links import LINK_WEIGHT
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.types import Floats, Ints

BOOSTING = Boosting(rounds=160, rate=0.06, least_pairs=60, ridge=5.0)
SAMPLE = 200_000  # sampled pairs, from which thresholds of levels are chosen


@dataclass(frozen=True, slots=True, eq=False)
class ContextTraining:
    """Pairs of held-out records with the levels of their context, in the same folds.

    held_out
        The same records and folds, but with the levels of cluster features. The initial score of a pair is
        its score without context, with the slope and shift of ``model``.
    model
        The features, their thresholds, slope and shift; the weights of levels are zero.
    """

    held_out: HeldOutRecords
    model: ContextModel
    seed: int

    def out_of_fold_scores(self) -> Floats:
        """Return the out-of-fold score in context of each linked pair."""
        offset = self.held_out.among.offset
        assert offset is not None
        return offset + self.held_out.out_of_fold_scores(lambda examples: self._boost(examples).link_scores)

    def fit_all(self) -> ContextModel:
        """Fit the model to all evaluation records; features whose weights are all zero are left out."""
        held_out, model = self.held_out, self.model
        weights = self._boost(held_out.data.pair_examples(held_out.judged))
        used = weights.used()
        weights.values[LINK_WEIGHT] += model.weights.link
        return ContextModel(
            tuple(model.features[k] for k in used),
            tuple(model.cuts[k] for k in used),
            weights.only(used),
            model.slope,
        )

    def _boost(self, examples: PairExamples) -> LevelWeights:
        sizes = self.model.weights.sizes
        return boost_tables(examples, sizes, [0] * len(sizes), BOOSTING, seed=self.seed)


def train_context(
    normal: NormalTable, held_out: HeldOutRecords, score: Floats, labels: Ints, seed: int
) -> ContextTraining:
    """Compute the context of held-out pairs from their out-of-fold scores and a strict clustering by these.

    normal
        The normal forms of the records of ``held_out.among``.

    If only some of the records are evaluated, the clusters of the others are incomplete, so these are not
    used for training.
    """
    among = held_out.among
    context = PairContext(normal, among.graph.first, among.graph.second, score, labels)
    features, cuts, levels = [], [], []
    some: Ints | slice = slice(None)
    if len(score) > SAMPLE:
        some = np.random.default_rng([seed, 7]).choice(len(score), SAMPLE, replace=False)
    for feature in context_features(normal):
        values = context.values(feature)[some]
        edges = Cuts.by_shares(values)
        found = context.levels(feature, edges)
        if len(np.unique(found)) > 1:
            features.append(feature)
            cuts.append(edges)
            levels.append(found)
    base = np.asarray(score, np.float64)
    table = np.stack(levels, axis=1) if levels else np.zeros((len(base), 0), np.uint8)
    of_context = replace(among, levels=table, labelled=None, templates=(), offset=base)
    pairs = of_context.pair_examples(held_out.judged)
    assert pairs.offset is not None
    slope, shift = fit_slope_and_shift(pairs.offset, pairs.same, pairs.share)
    of_context = replace(of_context, offset=slope * base + shift)
    taught = replace(of_context, entity=np.where(held_out.judged, among.entity, -1).astype(np.int32))
    weights = LevelWeights.zeros([one.size for one in cuts])
    weights.values[LINK_WEIGHT] = shift
    moved = replace(held_out, data=taught, fold=held_out.fold_among, among=of_context)
    return ContextTraining(moved, ContextModel(tuple(features), tuple(cuts), weights, slope), seed)
