"""Log odds that the two parts of a merge are one entity, learned on held-out entities.

A merge tree (see `factorwise.inference.merge_trees`) leads from single records via the clusters of the search
to unions of clusters. The log odds that a node is one entity, given that its parent is not, are linear in the
mean score of the pairs across its two parts, in the mean score of the best links between the parts, in the
log of the size of the smaller part, in the log of the number of clusters that it adds to one, and in the gain
of each user-defined template. The coefficients within clusters and between clusters differ. So the evidence
of many pairs, which is hardly ever independent, counts as one piece of evidence. Large scores count by their
logarithm, because the remaining risk of error does not fall in proportion to them. A union of many clusters
needs every one of its merges to be right: without a coefficient for that, such unions would be drawn far too
often.

The coefficients maximise the likelihood of the true entities as cuts of the tree, with a prior that matters
if there are few held-out entities. Their uncertainty is part of the posterior: clusterings are drawn with
coefficients that are themselves drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.merge_gains import add_gains
from factorwise.inference.merge_trees import SURE, MergeTree, grow_merge_tree
from factorwise.types import Bools, Floats, Ints
from factorwise.validation import as_number

ROUNDS = 50  # most iterations of Newton's method
LARGEST_GAIN = 50.0  # largest template gain used for learning; a larger one adds no information
UNKNOWN, MIXED = -1, -2
LINE_SPREAD = (1.0, 0.3, 0.3, 0.3, 0.5)  # standard deviations of the prior of a line around its defaults
STRENGTH_SPREAD = 0.3  # standard deviation of the prior of a template's strength
LIKELY_ODDS = 20  # number of draws of the coefficients, which represent their uncertainty
MOST_CHANCES = 50_000_000  # most probabilities in memory: nodes times draws of the coefficients
LEAST_STRENGTH = 0.25  # least strength of a template in a draw, as a share of its estimate
DEFAULT_STRENGTH = 0.8  # a template counts as much as a pair score, whose mean and best link count 0.4 each


class MergeLine(NamedTuple):
    """Coefficients of the log odds of a merge: an offset and slopes.

    mean, best
        Slopes of the mean score of the pairs across the two parts, and of the mean score of the best links.
    size, pieces
        Slopes of the log of the size of the smaller part, and of the log of the number of clusters added.
    """

    offset: float
    mean: float
    best: float
    size: float
    pieces: float = 0.0


class MergeOdds(NamedTuple):
    """Log odds that a node of a merge tree is one entity, given that its parent is not.

    within, between
        Coefficients for merges within the clusters of the search, and between them.
    strengths
        The coefficient of the gain of each user-defined template, by name.
    covariance
        The covariance of all these coefficients, in the order of `values`; empty if they were not learned.

    The defaults are typical of the estimates on labelled tables of persons, schools, authors and citations.
    """

    within: MergeLine = MergeLine(0.0, 0.4, 0.4, 0.0)
    between: MergeLine = MergeLine(-2.5, 0.4, 0.4, -0.3, -1.0)
    strengths: Mapping[str, float] = MappingProxyType({})
    covariance: tuple[tuple[float, ...], ...] = ()

    def for_templates(self, names: Collection[str]) -> MergeOdds:
        """Return the odds for these templates; those without an estimate get the default strength."""
        if set(names) == set(self.strengths):
            return self
        strengths = {name: self.strengths.get(name, DEFAULT_STRENGTH) for name in names}
        covariance: tuple[tuple[float, ...], ...] = ()
        if self.covariance:
            known = np.array(self.covariance)
            rows = [*range(FIXED), *(_row(self.strengths, name) for name in sorted(names))]
            there = np.array(rows) >= 0
            wider = np.where(there[:, None] & there, known[np.ix_(rows, rows)], 0.0)
            wider[~there, ~there] = STRENGTH_SPREAD**2
            covariance = _as_rows(wider)
        return MergeOdds(self.within, self.between, strengths, covariance)

    def values(self) -> Floats:
        """Return all coefficients as one array, with the strengths in the order of their names."""
        strengths = [self.strengths[name] for name in sorted(self.strengths)]
        return np.array([*self.within, *self.between, *strengths])

    def chances(self, tree: MergeTree, features: Floats | None = None) -> NDArray[np.float64]:
        """Return for each node the probability that it is one entity, given that none above it is.

        Unions of clusters that are very improbable get probability 0, because there are too many of them.

        features
            The `merge_features` of the tree, if they were computed before.
        """
        if features is None:
            features = merge_features(tree)
        log_odds = features @ self.for_templates(tree.gains).values()
        chance = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
        outer = np.arange(len(chance)) >= tree.n_inner
        chance[outer & (chance < SURE)] = 0.0
        chance[~tree.possible] = 0.0
        chance[: tree.n_items] = 1.0
        return np.asarray(chance, np.float64)

    def likely_chances(self, tree: MergeTree) -> NDArray[np.float64]:
        """Return `chances` for several equally likely draws of the coefficients: float[draws, nodes].

        The uncertainty of the coefficients affects all nodes at once. So it is represented by several draws,
        and not by moving the probability of each node towards one half.
        """
        odds, features = self.for_templates(tree.gains), merge_features(tree)
        count = min(LIKELY_ODDS, max(2, MOST_CHANCES // max(len(tree.mean), 1) // 2 * 2))
        return np.stack([likely.chances(tree, features) for likely in odds.draw(count)])

    def draw(self, count: int) -> list[MergeOdds]:
        """Draw antithetic pairs of coefficients from their posterior; return only itself if none was learned.

        A strength is at least a quarter of its estimate, so that what a template forbids stays improbable.
        """
        if not self.covariance:
            return [self]
        center, (variance, axes) = self.values(), np.linalg.eigh(np.array(self.covariance))
        root = axes * np.sqrt(np.maximum(variance, 0.0))
        steps = np.random.default_rng(0).normal(size=(count // 2, len(center))) @ root.T
        drawn = center + np.concatenate([steps, -steps])
        drawn[:, FIXED:] = np.maximum(drawn[:, FIXED:], LEAST_STRENGTH * center[FIXED:])
        return [_odds_of(values, sorted(self.strengths)) for values in drawn]

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "within": self.within._asdict(),
            "between": self.between._asdict(),
            "strengths": dict(self.strengths),
            "covariance": [list(row) for row in self.covariance],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Restore the odds from the result of `as_dict`."""
        within, between = (
            MergeLine(**{name: as_number(name, value) for name, value in values[line].items()})
            for line in ("within", "between")
        )
        strengths = {name: as_number(name, value) for name, value in values["strengths"].items()}
        covariance = tuple(
            tuple(as_number("covariance", value) for value in row) for row in values["covariance"]
        )
        if "pieces" not in values["between"]:  # the file is older than this coefficient
            covariance = ()
        if covariance and np.shape(covariance) != (FIXED + len(strengths),) * 2:
            raise ValueError("the covariance and the numbers of the odds of merges do not fit together")
        return cls(within, between, strengths, covariance)


FIXED = 2 * len(MergeLine._fields)  # number of coefficients besides the strengths of templates
DEFAULT_ODDS = MergeOdds()

#: Without labels, a pair of log odds L has the score exp(L) - 1, which `squash` maps to about 2 L.
UNLABELLED_ODDS = MergeOdds(MergeLine(0.0, 0.25, 0.25, 0.0), MergeLine(-2.5, 0.25, 0.25, -0.3, -1.0))


def _odds_of(values: Floats, templates: Sequence[str]) -> MergeOdds:
    """Return the odds with the given `MergeOdds.values`."""
    within, between = (MergeLine(*line.tolist()) for line in np.split(values[:FIXED], 2))
    return MergeOdds(within, between, dict(zip(templates, values[FIXED:].tolist(), strict=True)))


def _row(strengths: Mapping[str, float], name: str) -> int:
    """Return the row of a strength in the covariance, or -1 if it has none."""
    return FIXED + sorted(strengths).index(name) if name in strengths else -1


def _as_rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())


class MergeCases(NamedTuple):
    """The nodes of a tree that the true entities decide from the top down: roots, and parts of mixed nodes.

    node
        The decided nodes.
    same
        Whether each node is one entity.
    group
        The group of each node, an entity or a block of entities, whose nodes are not independent.
    """

    node: NDArray[np.int64]
    same: Bools
    group: NDArray[np.int64]


class MergeExamples(NamedTuple):
    """Training data of the odds: features of merges, and whether each is one entity.

    templates
        Names of the user-defined templates whose gains are among the features.
    """

    features: Floats
    same: Bools
    templates: tuple[str, ...] = ()

    @classmethod
    def of(cls, tree: MergeTree, cases: MergeCases) -> Self:
        """Return training examples from the decided merges of a tree."""
        return cls(merge_features(tree)[cases.node], cases.same, tuple(sorted(tree.gains)))

    def part(self, chosen: Bools) -> Self:
        """Return the chosen examples."""
        return self._replace(features=self.features[chosen], same=self.same[chosen])


def tree_of_walk(walk: LinkWalk) -> MergeTree:
    """Return the merge tree around the clustering of a walk, with the gains of its own templates."""
    tree = grow_merge_tree(
        walk.graph,
        walk.link_scores,
        walk.labels,
        counts=walk.counts,
        sources=walk.sources,
        pairs=walk.link_pairs,
        unlinked=float(walk.settings[0]),
    )
    return tree if walk.further is None else add_gains(tree, walk.further)


def squash(values: Floats) -> Floats:
    """Return about the value itself if it is small, and twice its logarithm if it is large."""
    return np.asarray(2.0 * np.arcsinh(values / 2.0))


def merge_features(tree: MergeTree) -> Floats:
    """Return the features of the log odds of all nodes: float[nodes, 10 + templates]."""
    n, nodes = tree.n_items, len(tree.mean)
    inner = (np.arange(nodes) < tree.n_inner)[:, None].astype(np.float64)
    smaller = np.ones(nodes)
    smaller[n:] = np.minimum(tree.count[tree.left[n:]], tree.count[tree.right[n:]])
    mean = squash(np.clip(tree.mean, -1e9, 1e9))
    pieces = np.log(np.maximum(tree.entities_united() - 1, 1))
    line = np.column_stack([np.ones(nodes), mean, squash(tree.best), np.log(smaller), pieces])
    gains = [tree.gains[name] for name in sorted(tree.gains)]
    return np.column_stack([line * inner, line * (1.0 - inner), *gains])


def decided_merges(tree: MergeTree, truth: Ints, judged: Bools, group: Ints | None = None) -> MergeCases:
    """Return the nodes that the true entities decide.

    truth
        The entity of each item, -1 where it is not known.
    judged
        Whether each item is used for training; nodes without any such item are left out.
    group
        The group of each item, whose nodes are not independent; None to use its entity.
    """
    others = len(tree.mean) - tree.n_items
    entity = np.append(truth, np.full(others, UNKNOWN)).astype(np.int64)
    learned = np.append(judged, np.zeros(others, np.bool_))
    together = np.append(truth if group is None else group, np.zeros(others)).astype(np.int64)
    for node in range(tree.n_items, len(tree.mean)):
        left, right = tree.left[node], tree.right[node]
        one, two = entity[left], entity[right]
        learned[node] = learned[left] or learned[right]
        together[node] = together[left] if learned[left] else together[right]
        if one == UNKNOWN or two == UNKNOWN:
            entity[node] = max(one, two) if MIXED not in (one, two) else MIXED
        else:
            entity[node] = one if one == two else MIXED
    both = np.zeros(len(entity), np.bool_)
    both[tree.n_items :] = (entity[tree.left[tree.n_items :]] != UNKNOWN) & (
        entity[tree.right[tree.n_items :]] != UNKNOWN
    )
    reached = (tree.parent < 0) | (entity[tree.parent] == MIXED)
    decided = np.flatnonzero(both & reached & learned & tree.possible & np.isfinite(tree.mean))
    return MergeCases(decided, entity[decided] != MIXED, together[decided])


def fit_merge_odds(examples: Sequence[MergeExamples]) -> MergeOdds:
    """Fit the odds to decided merges by maximum a posteriori, with a Gaussian prior around the defaults.

    A template that held-out entities contradict gets strength 0, and never a negative one.
    """
    templates = examples[0].templates
    default = DEFAULT_ODDS.for_templates(templates)
    center = default.values()
    spread = np.array([*LINE_SPREAD, *LINE_SPREAD, *(STRENGTH_SPREAD for _ in templates)])
    precision = np.diag(1.0 / spread**2)
    features = np.concatenate([one.features for one in examples])
    features[:, FIXED:] = np.clip(features[:, FIXED:], -LARGEST_GAIN, LARGEST_GAIN)
    same = np.concatenate([one.same for one in examples]).astype(np.float64)
    weights = center.copy()
    for _ in range(ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(features @ weights, -30.0, 30.0)))
        slope = features.T @ (same - chance) - precision @ (weights - center)
        curvature = (features * (chance * (1.0 - chance))[:, None]).T @ features + precision
        step = np.linalg.solve(curvature, slope)
        weights = weights + step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < 1e-8:
            break
    weights[FIXED:] = np.maximum(weights[FIXED:], 0.0)
    return _odds_of(weights, templates)._replace(covariance=_as_rows(np.linalg.inv(curvature)))
