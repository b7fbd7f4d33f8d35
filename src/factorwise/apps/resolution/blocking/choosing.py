"""Which blocking rules to use: from labelled entities, or from what the fields are.

Both ways choose greedily, the rule that adds most for the pairs it costs first, until hardly anything is
left to add. With labels, what a rule adds is the true pairs it finds and the parts of entities it connects;
both are monotone and submodular, so that a gain only falls as rules are added and need rarely be looked at
again. Without labels it is the share of imagined pairs of records whose fields have been spoiled at random.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from factorwise.apps.resolution.blocking.candidates import default_budget
from factorwise.apps.resolution.blocking.keys import KeyMaker, KeyRows, combined, mixed
from factorwise.apps.resolution.blocking.pool import PoolRule, Sample, rule_pool
from factorwise.apps.resolution.blocking.rules import Rule
from factorwise.apps.resolution.fields import FieldSpec
from factorwise.apps.resolution.forms import NormalTable, offsets_of, ranges
from factorwise.types import Bools, Ints

_IMAGINED = 4_000  # pairs of records
_TRUE_PAIRS = 20_000
_LEAST_GAIN = 0.002  # share of imagined pairs that a rule must add
_LEAST_GAIN_LEARNED = 0.0005
_WORTH = 4e-5  # share that a rule must add for each pair an item that it costs
_TOO_LARGE = 20  # budgets that a rule alone may exceed before it is of no use
_MOST = 16  # rules


class Chosen(NamedTuple):
    """A chosen rule, the pairs it is estimated to make and what it added to the objective."""

    rule: Rule
    pairs: float
    gain: float


def default_rules(
    specs: Sequence[FieldSpec], normal: NormalTable, *, n_items: int | None = None
) -> list[Rule]:
    """Choose rules by the kinds of the fields and the frequencies of their values.

    n_items
        Number of records the rules are meant for, if there will be more than in the table.
    """
    sample = Sample(normal, n_items)
    pool = rule_pool(specs, sample)
    chosen = choose(pool, _Imagined(pool, sample), sample.n_items, _LEAST_GAIN)
    return [one.rule for one in chosen]


def learned_rules(
    specs: Sequence[FieldSpec], normal: NormalTable, entity: Ints, *, n_items: int | None = None
) -> list[Rule]:
    """Choose rules by what records of one entity share.

    entity : int[items]
        The entity of each item, -1 where it is not known.
    n_items
        Number of records the rules are meant for, if there will be more than in the table.
    """
    sample = Sample(normal, n_items)
    pool = rule_pool(specs, sample)
    chosen = choose(pool, _Labelled(pool, normal, entity), sample.n_items, _LEAST_GAIN_LEARNED)
    return [one.rule for one in chosen] or default_rules(specs, normal, n_items=n_items)


class Objective(Protocol):
    """What rules are chosen for: monotone and submodular, between 0 and 1."""

    def gain(self, number: int) -> float:
        """Return what a rule of the pool would add."""

    def add(self, number: int) -> None:
        """Take a rule."""


def choose(pool: Sequence[PoolRule], objective: Objective, n_items: int, least_gain: float) -> list[Chosen]:
    """Choose rules greedily by gain per pair, within the budget of pairs.

    A rule is taken if it adds ``least_gain``, and enough for its pairs.
    """
    budget = float(default_budget(n_items))
    useful = [k for k, one in enumerate(pool) if one.pairs <= _TOO_LARGE * budget]
    if not useful and pool:
        useful = [min(range(len(pool)), key=lambda k: pool[k].pairs)]

    def cost(number: int) -> float:
        return min(pool[number].pairs, budget) / max(n_items, 1) + 0.5

    waiting = [(-objective.gain(k) / cost(k), k, 0) for k in useful]
    heapq.heapify(waiting)
    chosen: list[Chosen] = []
    spent = 0.0
    while waiting and len(chosen) < _MOST:
        _, number, when = heapq.heappop(waiting)
        gain = objective.gain(number)
        if when < len(chosen):  # the gain may have fallen since it was looked at
            if gain >= least_gain:
                heapq.heappush(waiting, (-gain / cost(number), number, len(chosen)))
            continue
        worth = gain >= max(least_gain, _WORTH * cost(number))
        if not worth or (chosen and spent + min(pool[number].pairs, budget) > 1.5 * budget):
            continue
        objective.add(number)
        chosen.append(Chosen(pool[number].rule, pool[number].pairs, gain))
        spent += min(pool[number].pairs, budget)
    return chosen


class _Imagined:
    """Pairs of records, imagined: one is in the table, of the other each trait is spoiled by chance."""

    def __init__(self, pool: Sequence[PoolRule], sample: Sample) -> None:
        draws = np.random.default_rng(1)
        rows = draws.integers(0, max(len(sample.rows), 1), _IMAGINED if len(sample.rows) else 0)
        traits = sorted({trait for one in pool for trait in one.traits})
        luck = {trait: draws.random(len(rows)) for trait in traits}
        self._holds = []
        for one in pool:
            holds = np.ones(len(rows), bool)
            for part in one.rule.parts:
                holds &= ~sample.normal[part.field][part.form].missing[rows]
            for trait, error in one.traits.items():
                holds &= luck[trait] >= error
            self._holds.append(holds)
        self._found = np.zeros(len(rows), bool)

    def gain(self, number: int) -> float:
        return float((self._holds[number] & ~self._found).mean()) if len(self._found) else 0.0

    def add(self, number: int) -> None:
        self._found |= self._holds[number]


class _Labelled:
    """True pairs found, and parts of entities connected, half and half."""

    def __init__(self, pool: Sequence[PoolRule], normal: NormalTable, entity: Ints) -> None:
        self._pool = pool
        self._maker = KeyMaker(normal)
        self._pairs = true_pairs(entity)
        self._entity = np.asarray(entity, np.int64)
        self._found = np.zeros(len(self._pairs), bool)
        self._parts = np.arange(len(entity))
        known = self._entity[self._entity >= 0]
        self._links = len(known) - len(np.unique(known))
        self._holds: dict[int, tuple[Bools, Ints]] = {}

    def gain(self, number: int) -> float:
        holds, links = self._looked_up(number)
        if not len(self._found):
            return 0.0
        joined = connected(self._parts, links)
        pairs = float((holds & ~self._found).mean())
        return 0.5 * pairs + 0.5 * (self._parts.max() - joined.max()) / max(self._links, 1)

    def add(self, number: int) -> None:
        holds, links = self._looked_up(number)
        self._found |= holds
        self._parts = connected(self._parts, links)

    def _looked_up(self, number: int) -> tuple[Bools, Ints]:
        if number not in self._holds:
            rows = self._maker.keys(self._pool[number].rule)
            self._holds[number] = (
                share_key(rows, self._pairs, len(self._entity)),
                entity_links(rows, self._entity),
            )
        return self._holds[number]


def true_pairs(entity: Ints, most: int = _TRUE_PAIRS) -> NDArray[np.int64]:
    """Return int64[pairs, 2]: pairs of items of one entity, at most so many, chosen evenly by item."""
    items = np.flatnonzero(np.asarray(entity) >= 0)
    order = items[np.argsort(np.asarray(entity)[items], kind="stable")]
    sizes = np.unique(np.asarray(entity)[order], return_counts=True)[1]
    starts = np.repeat(offsets_of(sizes)[:-1], sizes)
    stops = starts + np.repeat(sizes, sizes)
    place = np.arange(len(order))
    after = stops - place - 1
    if after.sum() <= most:
        left, right = np.repeat(place, after), ranges(place + 1, after)
    else:
        draws = np.random.default_rng(2)
        left = draws.choice(place[stops - starts > 1], most)
        shift = 1 + (draws.random(most) * (stops - starts - 1)[left]).astype(np.int64)
        right = starts[left] + (left - starts[left] + shift) % (stops - starts)[left]
    return np.stack([order[left], order[right]], axis=1)


def share_key(rows: KeyRows, pairs: NDArray[np.int64], n_items: int) -> Bools:
    """Return which pairs have a key in common."""
    offsets = np.searchsorted(rows.item, np.arange(n_items + 1))
    lengths = np.diff(offsets)
    found = []
    for side in (0, 1):
        items = pairs[:, side]
        keys = rows.key[ranges(offsets[items], lengths[items])]
        pair = np.repeat(np.arange(len(pairs), dtype=np.uint64), lengths[items])
        found.append((pair, combined(mixed(pair), keys)))
    shared = np.isin(found[0][1], found[1][1])
    holds = np.zeros(len(pairs), bool)
    holds[found[0][0][shared].astype(np.int64)] = True
    return holds


def entity_links(rows: KeyRows, entity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[links, 2] that connect the items of one entity which share a key."""
    known = entity[rows.item] >= 0
    item = rows.item[known].astype(np.int64)
    key = combined(mixed(entity[item].astype(np.uint64)), rows.key[known])
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    return np.stack([item[order][1:][same], item[order][:-1][same]], axis=1)


def connected(parts: Ints, links: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the parts of items, numbered from zero, after links have joined some."""
    n_parts = int(parts.max(initial=-1)) + 1
    ends = (parts[links[:, 0]], parts[links[:, 1]])
    graph = coo_array((np.ones(len(links), bool), ends), shape=(n_parts, n_parts))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)[parts]
