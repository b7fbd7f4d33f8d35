"""Learning what the clusters of two records say: boosted tables on top of out-of-fold pair scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from factorwise.apps.resolution.comparisons import Cuts
from factorwise.apps.resolution.context.features import PAIR, PairContext, context_features
from factorwise.apps.resolution.context.model import ContextModel
from factorwise.apps.resolution.forms import NormalTable
from factorwise.apps.resolution.training.boosted_tables import Boosting, boost_tables
from factorwise.apps.resolution.training.examples import PairExamples
from factorwise.apps.resolution.training.folds import HeldOut, Scorer
from factorwise.model.level_weights import LevelWeights
from factorwise.types import Floats, Ints

BOOSTING = Boosting(rounds=80, rate=0.06, least_pairs=60, ridge=5.0)
SAMPLE = 200_000  # pairs that say where levels are cut


@dataclass(frozen=True, slots=True, eq=False)
class ContextTraining:
    """Pairs of held-out records with the levels of their context, in folds as before.

    held_out
        The same records and folds, but the levels are those of the features of clusters.
    model
        The features and their cuts; its weights are zero.
    """

    held_out: HeldOut
    model: ContextModel
    seed: int

    def fit(self, examples: PairExamples) -> ContextModel:
        """Learn the weights of the levels from labelled pairs."""
        directions = [1 if feature.field == PAIR else 0 for feature in self.model.features]
        weights = boost_tables(examples, self.model.weights.sizes, directions, BOOSTING, seed=self.seed)
        return replace(self.model, weights=weights)

    def fit_all(self) -> ContextModel:
        """Learn from all records that are compared on; features that have no say are left out."""
        held_out = self.held_out
        model = self.fit(held_out.data.pair_examples(held_out.judged))
        used = sorted({0, *model.weights.used()})  # the pair score always has a place
        return ContextModel(
            tuple(model.features[k] for k in used),
            tuple(model.cuts[k] for k in used),
            model.weights.only(used),
        )

    def scorer(self) -> Callable[[PairExamples], Scorer]:
        """Return what fits weights to pairs, and scores others by them."""
        return lambda examples: self.fit(examples).weights.link_scores


def train_context(
    normal: NormalTable, held_out: HeldOut, score: Floats, labels: Ints, seed: int
) -> ContextTraining:
    """Compute the context of held-out pairs from their out-of-fold scores and a strict clustering by these.

    normal
        The records of ``held_out.among``.

    Where only some of the records are compared on, the clusters of the others are not whole, so that nothing
    is learned from these.
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
        if feature.field == PAIR or len(np.unique(found)) > 1:
            features.append(feature)
            cuts.append(edges)
            levels.append(found)
    weights = LevelWeights.zeros([one.size for one in cuts])
    compared = replace(among, levels=np.stack(levels, axis=1), labelled=None, templates=())
    taught = replace(compared, entity=np.where(held_out.judged, among.entity, -1).astype(np.int32))
    moved = replace(held_out, data=taught, fold=held_out.fold_among, among=compared)
    return ContextTraining(moved, ContextModel(tuple(features), tuple(cuts), weights), seed)
