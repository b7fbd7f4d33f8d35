"""Context features of the two clusters of a pair: their links, values, words and numbers.

``links``
    The scores of all pairs that connect the two clusters, which add indirect evidence through other records.
``values``
    The probability that a value of one cluster equals one of the other, the share of the smaller side's
    values that the other has, and the *urn gain*: how much more probable the values of both are as draws from
    one urn than from two (of a Dirichlet-multinomial with the frequencies of the column as base), per value
    of the smaller side. Repetitions of the same value add little to it.
``words``
    The cosine of the two bags of words, weighted by rarity, and the share of the smaller that the other has.
``numbers``
    The gap between the two ranges of a number, such as a year, and the span of both together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons import Cuts
from factorwise.apps.resolution.context.grouping import ClusterPairs, Sides
from factorwise.apps.resolution.normalize.forms import Lists, NormalTable, Numbers, Strings
from factorwise.kernels.clusterings.cluster_overlaps import cluster_overlaps
from factorwise.types import Floats, Ints
from factorwise.variables.sparse_rows import starts_of

LINKS = "links"
VALUES: dict[str, tuple[str, ...]] = {
    "name": ("full", "last"),
    "text": ("text",),
    "category": ("text",),
    "identifier": ("code",),
    "date": ("digits",),
    "address": ("postcode", "street"),
    "email": ("email",),
    "phone": ("tail",),
    "location": ("text",),
}
WORDS: dict[str, tuple[str, ...]] = {
    "text": ("tokens",),
    "list": ("items",),
    "address": ("tokens",),
    "location": ("tokens",),
}
NUMBERS: dict[str, tuple[str, ...]] = {"number": ("number",), "date": ("year",)}
OF_VALUES, OF_WORDS, OF_NUMBERS = (
    ("agreement", "coverage", "urn gain"),
    ("cosine", "coverage"),
    ("gap", "span"),
)


class ContextFeature(NamedTuple):
    """A number computed from two clusters: its field, form and measure."""

    field: str
    form: str
    measure: str

    @property
    def name(self) -> str:
        """The name of the feature in lists of weights."""
        return f"entities, {self.field}: {self.measure} of {self.form}"


def context_features(normal: NormalTable) -> list[ContextFeature]:
    """Return all context features of clusters of records with these fields."""
    found = [ContextFeature(LINKS, LINKS, name) for name in LINK_MEASURES]
    for field in normal.values():
        for forms, measures in ((VALUES, OF_VALUES), (WORDS, OF_WORDS), (NUMBERS, OF_NUMBERS)):
            for form in forms.get(field.kind, ()):
                if form in field:
                    found += [ContextFeature(field.name, form, measure) for measure in measures]
    return found


class PairContext:
    """Pairs of records with the clusters of both records.

    first, second, score
        The pairs, and their scores without context.
    labels
        The cluster of each record.
    """

    def __init__(self, normal: NormalTable, first: Ints, second: Ints, score: Floats, labels: Ints) -> None:
        self.normal, self.score = normal, np.asarray(score, np.float32)
        self.pairs = ClusterPairs(np.asarray(first, np.int64), np.asarray(second, np.int64), labels)
        self._kept: tuple[tuple[str, str], dict[str, Sides]] = (("", ""), {})

    def values(self, feature: ContextFeature) -> NDArray[np.float32]:
        """Return a feature of each pair; NaN where one side has no value."""
        return self.pairs.values(self._sides(feature))

    def levels(self, feature: ContextFeature, cuts: Cuts) -> NDArray[np.uint8]:
        """Return the level of a feature of each pair."""
        return self.pairs.levels(self._sides(feature), cuts)

    def _sides(self, feature: ContextFeature) -> Sides:
        """Return a feature of each pair of clusters; features of one form are computed together."""
        key = feature.field, feature.form
        if self._kept[0] != key:
            self._kept = key, dict(self._computed(*key))
        return self._kept[1][feature.measure]

    def _computed(self, field: str, form: str) -> Iterator[tuple[str, Sides]]:
        if (field, form) == (LINKS, LINKS):
            yield from zip(LINK_MEASURES, _link_sides(self.pairs, self.score), strict=True)
            return
        column = self.normal[field][form]
        if isinstance(column, Numbers):
            yield from zip(OF_NUMBERS, _number_sides(self.pairs, column.values), strict=True)
        elif isinstance(column, Lists):
            yield from _Tally(self.pairs, column, squared=True).sides()
        elif isinstance(column, Strings):
            yield from _tally_of_strings(self.pairs, column).sides()


def _tally_of_strings(pairs: ClusterPairs, column: Strings) -> _Tally:
    there = column.codes >= 0
    offsets = starts_of(there.astype(np.int64))
    whole = column.frequencies()
    return _Tally(pairs, Lists(offsets, column.codes[there], column.values, whole), squared=False)


class _Tally:
    """Counts of the values of a column in each cluster.

    column
        The values of each record, with their frequencies in the whole table.
    squared
        Whether values are weighted by their squared rarity, as a cosine needs, instead of their rarity.
    """

    def __init__(self, pairs: ClusterPairs, column: Lists, *, squared: bool) -> None:
        self.pairs, self.offsets, self.codes = pairs, column.offsets, column.codes
        seen, filled = column.frequencies()
        seen = np.append(seen, 0)[: max(len(seen), 1)]
        rarity = 1e-3 - np.log(np.maximum(seen, 1) / max(filled, 1)).clip(max=0.0)
        self.weight = rarity**2 if squared else rarity
        self.measures = OF_WORDS if squared else OF_VALUES
        self.base = np.maximum(seen, 1) / max(int(seen.sum()), 1)

    def by_cluster(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """Return the start of each cluster's values, the values, and their counts in the cluster."""
        clusters, width = len(self.pairs.size), len(self.weight)
        keys = np.sort(np.repeat(self.pairs.label, np.diff(self.offsets)) * width + self.codes)
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        row, value = np.divmod(keys[first], width)
        count = np.diff(np.append(first, len(keys)))
        start = starts_of(np.bincount(row, minlength=clusters))
        return start, value.astype(np.int32), count.astype(np.int32)

    def sides(self) -> Iterator[tuple[str, Sides]]:
        """Yield each measure of values or words, with its name."""
        pairs, rows = self.pairs, self.by_cluster()
        cluster = np.repeat(np.arange(len(pairs.size)), np.diff(rows[0]))
        number = np.bincount(cluster, rows[2], minlength=len(pairs.size))
        total = np.bincount(cluster, self.weight[rows[1]], minlength=len(pairs.size))
        across, gains = np.zeros((len(pairs.one), 4)), "urn gain" in self.measures
        cluster_overlaps(*rows, *rows, self.weight, self.base, pairs.one, pairs.two, False, gains, across)
        record, home = pairs.record, pairs.label[pairs.record]
        inside = np.zeros((len(record), 4))
        ones = np.ones(len(self.codes), np.int32)
        mine = self.offsets, self.codes, ones
        cluster_overlaps(*mine, *rows, self.weight, self.base, record, home, True, gains, inside)
        count = np.diff(self.offsets)
        own = count[record].astype(np.float64)
        # summed for each record by itself, so that rounding does not depend on the other records
        own_total = np.bincount(
            np.repeat(np.arange(len(count)), count), self.weight[self.codes], minlength=len(count)
        )[record]
        sides = (
            _Overlap(across, total[pairs.one], total[pairs.two], number[pairs.one], number[pairs.two]),
            _Overlap(inside, own_total, total[home] - inside[:, 3], own, number[home] - own),
        )
        for name in self.measures:
            function = _overlap_measure(name)
            yield name, Sides(*(side.measured(function) for side in sides))


class _Overlap(NamedTuple):
    """Sums over the values that two sides share, and the total weight and number of values of each."""

    shared: Floats
    weight: Floats
    other_weight: Floats
    number: Floats
    other_number: Floats

    def measured(self, function: Callable[[_Overlap], Floats]) -> Floats:
        """Return a measure of the two sides; NaN where one side has no values."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found = function(self)
        return np.where((self.number > 0) & (self.other_number > 0), found, np.nan)


def _overlap_measure(name: str) -> Callable[[_Overlap], Floats]:
    """Return the function of a measure of values or words."""
    measures: dict[str, Callable[[_Overlap], Floats]] = {
        "agreement": lambda two: two.shared[:, 0] / (two.number * two.other_number),
        "coverage": lambda two: two.shared[:, 1] / np.minimum(two.weight, two.other_weight),
        "cosine": lambda two: two.shared[:, 1] / np.sqrt(two.weight * two.other_weight),
        "urn gain": _urn_gain,
    }
    return measures[name]


def _urn_gain(two: _Overlap) -> Floats:
    from scipy.special import gammaln  # imported here, so that models without context do not load SciPy

    both = two.number + two.other_number
    drawn = gammaln(1.0 + both) - gammaln(1.0 + two.number) - gammaln(1.0 + two.other_number)
    return np.asarray((two.shared[:, 2] - drawn) / np.minimum(two.number, two.other_number))


LINK_MEASURES = (
    "linked share",
    "mean score",
    "highest score",
    "lowest score",
    "mean probability",
    "mean best probability",
    "share above zero",
    "records of the smaller",
    "records of the larger",
)


def _link_sides(pairs: ClusterPairs, score: NDArray[np.float32]) -> Iterator[Sides]:
    """Yield the features of the links between two sides, in the order of `LINK_MEASURES`."""
    probability = 0.5 * (1.0 + np.tanh(0.5 * score.astype(np.float64)))
    across, inside = score[pairs.across].astype(np.float64), score[pairs.inside].astype(np.float64)
    size = pairs.size.astype(np.float64)
    one, two, rest = size[pairs.one], size[pairs.two], size[pairs.label[pairs.record]] - 1.0
    ends = pairs.ends.ravel()
    of_pairs = _LinkSums(pairs.pair, across, probability[pairs.across], len(one))
    of_records = _LinkSums(ends, np.tile(inside, 2), np.tile(probability[pairs.inside], 2), len(rest))
    all_across, best = one * two, _best_of_records(pairs, probability[pairs.across])
    best_inside = (of_records.probability + of_records.highest_probability) / (rest + 1.0)
    yield Sides(of_pairs.count / all_across, of_records.count / rest)
    yield Sides(of_pairs.score / of_pairs.count, of_records.score / of_records.count)
    yield Sides(of_pairs.highest, of_records.highest)
    yield Sides(of_pairs.lowest, of_records.lowest)
    yield Sides(of_pairs.probability / all_across, of_records.probability / rest)
    yield Sides(best / (one + two), best_inside)
    yield Sides(of_pairs.positive / all_across, of_records.positive / rest)
    yield Sides(np.log(np.minimum(one, two)), np.zeros(len(rest)))
    yield Sides(np.log(np.maximum(one, two)), np.log(rest))


class _LinkSums:
    """Sums and extremes of the scores and probabilities of links, by group."""

    def __init__(self, group: Ints, score: Floats, probability: Floats, groups: int) -> None:
        self.count = np.bincount(group, minlength=groups).astype(np.float64)
        self.score = np.bincount(group, weights=score, minlength=groups)
        self.probability = np.bincount(group, weights=probability, minlength=groups)
        self.positive = np.bincount(group, weights=score > 0.0, minlength=groups)
        self.highest, self.lowest = np.full(groups, -np.inf), np.full(groups, np.inf)
        self.highest_probability = np.zeros(groups)
        np.maximum.at(self.highest, group, score)
        np.minimum.at(self.lowest, group, score)
        np.maximum.at(self.highest_probability, group, probability)


def _best_of_records(pairs: ClusterPairs, probability: Floats) -> Floats:
    """Sum, for each pair of clusters, the highest probability of each record with the other cluster."""
    record = np.concatenate([pairs.ends_across[0], pairs.ends_across[1]])
    pair = np.tile(pairs.pair, 2)
    key = record * np.int64(max(len(pairs.one), 1)) + pair
    groups, group = np.unique(key, return_inverse=True)
    best = np.zeros(len(groups))
    np.maximum.at(best, group, np.tile(probability, 2))
    sums = np.bincount(groups % max(len(pairs.one), 1), weights=best, minlength=len(pairs.one))
    return np.asarray(sums, np.float64)


def _number_sides(pairs: ClusterPairs, values: Floats) -> Iterator[Sides]:
    """Yield the gap between the ranges of two sides, and the span of both together."""
    low, next_low = _two_lowest(pairs, values)
    high, next_high = (-found for found in _two_lowest(pairs, -values))
    home, own = pairs.label[pairs.record], values[pairs.record]
    rest_low = np.where(own == low[home], next_low[home], low[home])
    rest_high = np.where(own == high[home], next_high[home], high[home])
    across = low[pairs.one], high[pairs.one], low[pairs.two], high[pairs.two]
    inside = own, own, rest_low, rest_high
    for measure in (_gap, _span):
        yield Sides(measure(*across), measure(*inside))


def _two_lowest(pairs: ClusterPairs, values: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and second lowest value of each cluster; infinity if there is none."""
    known = np.where(np.isnan(values), np.inf, values)
    order = np.lexsort((known, pairs.label))
    ordered, start = np.append(known[order], np.inf), starts_of(pairs.size)[:-1]
    return ordered[start], np.where(pairs.size > 1, ordered[start + 1], np.inf)


def _gap(low: Floats, high: Floats, other_low: Floats, other_high: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        gap = np.maximum(np.maximum(low - other_high, other_low - high), 0.0)
    return np.where(np.isfinite(low) & np.isfinite(other_low), gap, np.nan)


def _span(low: Floats, high: Floats, other_low: Floats, other_high: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        span = np.maximum(high, other_high) - np.minimum(low, other_low)
    return np.where(np.isfinite(low) & np.isfinite(other_low), span, np.nan)
