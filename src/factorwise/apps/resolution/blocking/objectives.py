"""Objectives by which blocking rules are chosen, with and without labels.

Both objectives are monotone and submodular: the gain of a rule falls as more rules are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.blocks import blocks_of
from factorwise.apps.resolution.blocking.keys import KeyMaker, KeyRows, combined, share_key
from factorwise.apps.resolution.blocking.pool import PoolRule, RecordSample
from factorwise.apps.resolution.blocking.rules import Part, Rule
from factorwise.apps.resolution.normalize.forms import ranges
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.kernels.graphs.components import component_numbers
from factorwise.rng import split_mix_words
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import starts_of

_IMAGINED = 3_000  # simulated pairs of records
_TRUE_PAIRS = 4_000  # most matching pairs that are used
_LABELLED = 5_000  # about the most labelled items that are used
_NAMESAKES = 5  # most records with a full name for it to count as one person's
_FEWEST = 200  # least number of such names
_AGAIN = 0.25  # remaining gain of a pair, as a factor, after each rule that finds it
_PRIOR = 50.0  # number of labelled links at which labels count as much as the simulation


class Objective(Protocol):
    """An objective by which rules are chosen: monotone, submodular, between 0 and 1."""

    def gain(self, number: int) -> float:
        """Return by how much a rule of the pool would raise the objective."""

    def add(self, number: int) -> None:
        """Add a rule of the pool to the chosen ones."""


class Imagined:
    """The share of simulated matching pairs that the rules find; pairs found by several rules count more.

    If there are names of persons, records with the same rare full name stand for matching records. What they
    share besides the name is observed; errors in the name are simulated at typical rates, and missing parts
    of it by those of two random records. Without such names, errors in all fields are simulated. Finding a
    pair by several rules has some value, because real errors may be more frequent than simulated ones.
    """

    def __init__(self, pool: Sequence[PoolRule], sample: RecordSample, specs: Sequence[FieldSpec]) -> None:
        draws = np.random.default_rng(1)
        pairs = namesakes(sample, specs)
        seen = {spec.name for spec in specs if spec.kind != "name"} if len(pairs) else set()
        size = len(pairs) or (_IMAGINED if len(sample.rows) else 0)
        others = draws.integers(0, max(len(sample.rows), 1), (size, 2))
        traits = sorted({trait for one in pool for trait in one.traits})
        luck = {trait: draws.random(size) for trait in traits}
        items, places = np.unique(pairs, return_inverse=True)
        maker = KeyMaker(sample.normal, items)
        shared: dict[tuple[Part, ...], Bools] = {}
        self._holds = []
        for one in pool:
            holds = np.ones(size, bool)
            look = tuple(part for part in one.rule.parts if part.field in seen)
            guess = tuple(part for part in one.rule.parts if part.field not in seen)
            if look:
                if look not in shared:
                    shared[look] = share_key(maker.keys(Rule(look)), places.reshape(-1, 2), len(items))
                holds &= shared[look]
            if guess:
                there = sample.maker.present(Rule(guess))
                holds &= there[others[:, 0]] & (there[others[:, 1]] | (len(seen) == 0))
            for trait, error in one.traits.items():
                if trait[0] not in seen:
                    holds &= luck[trait] >= error
            self._holds.append(holds)
        self._left = np.ones(size)

    def gain(self, number: int) -> float:
        """Return by how much a rule of the pool would raise the objective."""
        held = self._left[self._holds[number]]
        return float((1.0 - _AGAIN) * held.sum() / max(len(self._left), 1))

    def add(self, number: int) -> None:
        """Add a rule of the pool to the chosen ones."""
        self._left[self._holds[number]] *= _AGAIN


class Labelled:
    """The mean of pair recall and of connected links on labels, mixed with the simulated objective.

    entity : int[items]
        The entity of each item; -1 where it is unknown.
    """

    def __init__(
        self, pool: Sequence[PoolRule], sample: RecordSample, entity: Ints, imagined: Objective
    ) -> None:
        items = labelled_items(entity)
        self._pool = pool
        self._imagined = imagined
        self._maker = KeyMaker(sample.normal, items)
        self._entity = np.asarray(entity, np.int64)[items]
        self._pairs = true_pairs(self._entity)
        self._found = np.zeros(len(self._pairs), bool)
        self._parts = np.arange(len(items))
        self._links = len(items) - len(np.unique(self._entity))
        self._share = self._links / (self._links + _PRIOR)
        self._holds: dict[int, tuple[Bools, NDArray[np.int64]]] = {}

    def gain(self, number: int) -> float:
        """Return by how much a rule of the pool would raise the objective."""
        holds, links = self._looked_up(number)
        seen = 0.0
        if self._links:
            joined = connected(self._parts, links)
            seen = float((holds & ~self._found).mean()) / 2
            seen += int(self._parts.max() - joined.max()) / self._links / 2
        return self._share * seen + (1.0 - self._share) * self._imagined.gain(number)

    def add(self, number: int) -> None:
        """Add a rule of the pool to the chosen ones."""
        holds, links = self._looked_up(number)
        self._found |= holds
        self._parts = connected(self._parts, links)
        self._imagined.add(number)

    def _looked_up(self, number: int) -> tuple[Bools, NDArray[np.int64]]:
        if number not in self._holds:
            rows = self._maker.keys(self._pool[number].rule)
            holds = share_key(rows, self._pairs, len(self._entity))
            self._holds[number] = holds, entity_links(rows, self._entity)
        return self._holds[number]


def namesakes(sample: RecordSample, specs: Sequence[FieldSpec]) -> NDArray[np.int64]:
    """Return int64[pairs, 2]: random pairs of records that share a rare full name.

    If there are too few rare names, pairs of any shared name are returned, fewer of which match. If there are
    no names of persons, no pairs are returned.
    """
    forms = {"last": "", "root": ""}
    for spec in specs:
        for form in forms:
            if spec.kind == "name" and not forms[form] and form in set(sample.normal[spec.name]):
                forms[form] = spec.name
    if not all(forms.values()):
        return np.zeros((0, 2), np.int64)
    rule = Rule(tuple(Part(field, form) for form, field in forms.items()))
    blocks = blocks_of(KeyMaker(sample.normal).keys(rule), sample.normal.n_rows)
    few = blocks.select(blocks.size <= _NAMESAKES)
    chosen = few if len(few.size) >= _FEWEST else blocks
    draws = np.random.default_rng(3)
    starts, size = np.repeat(starts_of(chosen.size)[:-1], chosen.size), np.repeat(chosen.size, chosen.size)
    left = np.sort(draws.permutation(len(starts))[:_IMAGINED])
    shift = 1 + (draws.random(len(left)) * (size[left] - 1)).astype(np.int64)
    right = starts[left] + (left - starts[left] + shift) % size[left]
    return np.stack([chosen.item[left], chosen.item[right]], axis=1).astype(np.int64)


def labelled_items(entity: Ints, most: int = _LABELLED) -> NDArray[np.int64]:
    """Return the items of labelled entities with two or more items, sampling entities if there are many."""
    known = np.flatnonzero(np.asarray(entity) >= 0)
    different, which, sizes = np.unique(np.asarray(entity)[known], return_inverse=True, return_counts=True)
    order = np.random.default_rng(2).permutation(len(different))
    order = order[sizes[order] > 1]
    enough = np.cumsum(sizes[order]) - sizes[order] < most
    chosen = np.zeros(len(different), bool)
    chosen[order[enough]] = True
    return known[chosen[which]]


def true_pairs(entity: Ints, most: int = _TRUE_PAIRS) -> NDArray[np.int64]:
    """Return int64[pairs, 2]: the pairs of items of one entity, or a random sample if there are many."""
    order = np.argsort(entity, kind="stable")
    sizes = np.unique(entity, return_counts=True)[1]
    starts = np.repeat(starts_of(sizes)[:-1], sizes)
    size = np.repeat(sizes, sizes)
    place = np.arange(len(order))
    after = starts + size - place - 1
    if after.sum() <= most:
        left, right = np.repeat(place, after), ranges(place + 1, after)
    else:
        draws = np.random.default_rng(2)
        left = draws.choice(place[size > 1], most)
        shift = 1 + (draws.random(most) * (size - 1)[left]).astype(np.int64)
        right = starts[left] + (left - starts[left] + shift) % size[left]
    return np.stack([order[left], order[right]], axis=1)


def entity_links(rows: KeyRows, entity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[links, 2]: links that connect the items of one entity that share a key."""
    item = rows.item.astype(np.int64)
    key = combined(split_mix_words(entity[item].astype(np.uint64)), rows.key)
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    return np.stack([item[order][1:][same], item[order][:-1][same]], axis=1)


def connected(parts: Ints, links: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the component of each item, numbered from zero, after components are merged by links."""
    n_parts = int(parts.max(initial=-1)) + 1
    numbers = component_numbers(n_parts, parts[links[:, 0]], parts[links[:, 1]])
    return numbers.astype(np.int64)[parts]
