"""How likely the two parts of a merge are one entity: a few numbers, learned on held-out entities.

A merge tree (see `factorwise.inference.merge_trees`) leads from single records over the entities that were
found to unions of these. The log odds that a node is of one entity, if what lies above it is not, are linear
in the mean score of the pairs across its two parts, in the score of a record's best link into the other
part, in the log of the size of the smaller part, in the log of how many other found entities it unites with
one, and in what each template of one's own gains by the merge. Within the entities that were found and
between them the numbers differ. So the evidence of many pairs, which is hardly ever independent, counts as
one piece of evidence; and large scores count by their logarithm, because what is left to go wrong does not
fall with them. Of unions of many entities there are as many as of two, but each of the merges in them would
have to be right: counted alike, they would come up in every other draw as heaps of records.

The numbers are those under which the true entities are most probable as cuts of the tree: maximum likelihood,
with a prior that matters where held-out entities are few. How uncertain they then are goes into the
posterior: clusterings are drawn by numbers that are drawn themselves.
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

ROUNDS = 50  # of Newton's method
LARGEST_GAIN = 50.0  # of a template, where odds are learned: more would settle nothing more
UNKNOWN, MIXED = -1, -2
LINE_SPREAD = (1.0, 0.3, 0.3, 0.3, 0.5)  # standard deviations of the prior of a line, around the defaults
STRENGTH_SPREAD = 0.3  # and of the strengths of templates
LIKELY_ODDS = 20  # that are drawn where it matters how uncertain they are
MOST_CHANCES = 50_000_000  # in memory, of all nodes by all these odds
LEAST_STRENGTH = 0.25  # of a template in drawn odds, as a share of the likeliest
DEFAULT_STRENGTH = 0.8  # of a template: as much as the score of a pair, which is its mean and its best link


class MergeLine(NamedTuple):
    """Log odds of a merge: an offset, and the slopes of what they are linear in.

    mean, best
        Of the mean score of the pairs across the two parts, and of the mean best link.
    size, pieces
        Of the log of the records of the smaller part, and of how many found entities are united with one.
    """

    offset: float
    mean: float
    best: float
    size: float
    pieces: float = 0.0


class MergeOdds(NamedTuple):
    """Log odds that a node of a merge tree is of one entity, if the node above it is not.

    within, between
        Where the search has joined the two parts, and where it has not.
    strengths
        By the name of each template of one's own, how much of what it gains by the merge is added.
    covariance
        Of all these numbers in turn: how uncertain they are. Empty where they were not learned.

    The defaults are typical of what labels gave on tables of persons, schools, authors and citations.
    """

    within: MergeLine = MergeLine(0.0, 0.4, 0.4, 0.0)
    between: MergeLine = MergeLine(-2.5, 0.4, 0.4, -0.3, -1.0)
    strengths: Mapping[str, float] = MappingProxyType({})
    covariance: tuple[tuple[float, ...], ...] = ()

    def for_templates(self, names: Collection[str]) -> MergeOdds:
        """Return the odds for these templates: those that it does not speak of have the usual strength."""
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
        """Return all numbers in turn, the strengths in the order of their names."""
        strengths = [self.strengths[name] for name in sorted(self.strengths)]
        return np.array([*self.within, *self.between, *strengths])

    def chances(self, tree: MergeTree, features: Floats | None = None) -> NDArray[np.float64]:
        """Return for each node the probability that it is one entity, if none above it is.

        Of entities that the search has not joined, what is all but impossible is taken to be so: there are
        too many of them.

        features
            The `merge_features` of the tree, if they are at hand.
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
        """Return rows of `chances`, by odds that are as likely as each other: float[rows, nodes].

        How uncertain the numbers are is the same doubt at every node. So it is told by several rows, and not
        by probabilities that are nearer to one half each by itself.
        """
        odds, features = self.for_templates(tree.gains), merge_features(tree)
        count = min(LIKELY_ODDS, max(2, MOST_CHANCES // max(len(tree.mean), 1) // 2 * 2))
        return np.stack([likely.chances(tree, features) for likely in odds.draw(count)])

    def draw(self, count: int) -> list[MergeOdds]:
        """Draw odds from what is likely, each with its opposite; only themselves where nothing was learned.

        A strength is at least a quarter of the likeliest: what a template forbids shall not be doubted.
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
        """Read what `as_dict` gave."""
        within, between = (
            MergeLine(**{name: as_number(name, value) for name, value in values[line].items()})
            for line in ("within", "between")
        )
        strengths = {name: as_number(name, value) for name, value in values["strengths"].items()}
        covariance = tuple(
            tuple(as_number("covariance", value) for value in row) for row in values["covariance"]
        )
        if "pieces" not in values["between"]:  # a file from before they were counted
            covariance = ()
        if covariance and np.shape(covariance) != (FIXED + len(strengths),) * 2:
            raise ValueError("the covariance and the numbers of the odds of merges do not fit together")
        return cls(within, between, strengths, covariance)


FIXED = 2 * len(MergeLine._fields)  # numbers that all odds have
DEFAULT_ODDS = MergeOdds()

#: Without labels a pair of log odds L scores exp(L) - 1, of which `squash` makes twice L.
UNLABELLED_ODDS = MergeOdds(MergeLine(0.0, 0.25, 0.25, 0.0), MergeLine(-2.5, 0.25, 0.25, -0.3, -1.0))


def _odds_of(values: Floats, templates: Sequence[str]) -> MergeOdds:
    """Return the odds whose `MergeOdds.values` are given."""
    within, between = (MergeLine(*line.tolist()) for line in np.split(values[:FIXED], 2))
    return MergeOdds(within, between, dict(zip(templates, values[FIXED:].tolist(), strict=True)))


def _row(strengths: Mapping[str, float], name: str) -> int:
    """Return the row of a strength in the covariance, -1 where it has none."""
    return FIXED + sorted(strengths).index(name) if name in strengths else -1


def _as_rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())


class MergeCases(NamedTuple):
    """The nodes of a tree that truth decides from the top down: roots, and parts of what is not one entity.

    node
        Which they are.
    same
        Whether each is of one entity.
    group
        What each is decided together with: an entity or a block of entities.
    """

    node: NDArray[np.int64]
    same: Bools
    group: NDArray[np.int64]


class MergeExamples(NamedTuple):
    """What odds are learned from: features of merges, and whether each is of one entity.

    templates
        Names of the templates whose gains are among the features.
    """

    features: Floats
    same: Bools
    templates: tuple[str, ...] = ()

    @classmethod
    def of(cls, tree: MergeTree, cases: MergeCases) -> Self:
        """Return the decided merges of a tree."""
        return cls(merge_features(tree)[cases.node], cases.same, tuple(sorted(tree.gains)))

    def part(self, chosen: Bools) -> Self:
        """Return some of the merges."""
        return self._replace(features=self.features[chosen], same=self.same[chosen])


def tree_of_walk(walk: LinkWalk) -> MergeTree:
    """Return the merge tree around the clustering of a walk, with what its further templates gain."""
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
    """Return values as they are where they are small, and twice their logarithm where they are large."""
    return np.asarray(2.0 * np.arcsinh(values / 2.0))


def merge_features(tree: MergeTree) -> Floats:
    """Return what the log odds of nodes are linear in: float[nodes, 10 and templates]."""
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
    """Return the nodes that true entities decide.

    truth
        Entity of each item, -1 where it is not known.
    judged
        Items that shall be learned from: nodes without any are left out.
    group
        Of each item: what is decided together. None for its entity.
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
    """Learn the odds from decided merges by maximum likelihood, with a prior around the defaults.

    A template that held-out entities contradict has no strength; it never speaks for its opposite.
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
