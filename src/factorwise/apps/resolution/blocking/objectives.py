"""What blocking rules are chosen for, with labels and without.

Both objectives are monotone and submodular: a rule adds less, the more rules there are already.
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

_IMAGINED = 3_000  # pairs of records
_TRUE_PAIRS = 4_000
_LABELLED = 5_000  # items
_NAMESAKES = 5  # records with one full name, up to which they are taken to be of one person
_FEWEST = 200  # such names, if they are to stand for all
_AGAIN = 0.25  # what is left to gain of a pair that one rule more finds
_PRIOR = 50.0  # links in entities that are worth as much as what is imagined


class Objective(Protocol):
    """What rules are chosen for: monotone, submodular, between 0 and 1."""

    def gain(self, number: int) -> float:
        """Return what a rule of the pool would add."""

    def add(self, number: int) -> None:
        """Take a rule."""


class Imagined:
    """Pairs of records, imagined, and in how many ways the rules find them.

    Where there are names of persons, records with a full name that only few have stand for records of one
    entity: what they share besides the name is seen; the name itself is spoiled by chance, as often as names
    usually are, and as much of it is there as in two random records. Where there are none, every trait of a
    record is spoiled by chance. To find a pair twice is worth something, for there may be more amiss than is
    imagined.
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
        """Return what a rule of the pool would add."""
        held = self._left[self._holds[number]]
        return float((1.0 - _AGAIN) * held.sum() / max(len(self._left), 1))

    def add(self, number: int) -> None:
        """Take a rule."""
        self._left[self._holds[number]] *= _AGAIN


class Labelled:
    """True pairs found, and parts of entities connected, half and half; a little of what is imagined too.

    entity : int[items]
        The entity of each item, -1 where it is not known.
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
        """Return what a rule of the pool would add."""
        holds, links = self._looked_up(number)
        seen = 0.0
        if self._links:
            joined = connected(self._parts, links)
            seen = float((holds & ~self._found).mean()) / 2
            seen += int(self._parts.max() - joined.max()) / self._links / 2
        return self._share * seen + (1.0 - self._share) * self._imagined.gain(number)

    def add(self, number: int) -> None:
        """Take a rule."""
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
    """Return int64[pairs, 2]: random pairs of records with one full name, which only few have.

    If few names are so rare, pairs of any name are returned, of which fewer will be of one person; without
    names of persons, none.
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
    """Return the items of known entities that have two or more; of random entities, if there are many."""
    known = np.flatnonzero(np.asarray(entity) >= 0)
    different, which, sizes = np.unique(np.asarray(entity)[known], return_inverse=True, return_counts=True)
    order = np.random.default_rng(2).permutation(len(different))
    order = order[sizes[order] > 1]
    enough = np.cumsum(sizes[order]) - sizes[order] < most
    chosen = np.zeros(len(different), bool)
    chosen[order[enough]] = True
    return known[chosen[which]]


def true_pairs(entity: Ints, most: int = _TRUE_PAIRS) -> NDArray[np.int64]:
    """Return int64[pairs, 2]: pairs of items of one entity, random ones if there are many."""
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
    """Return int64[links, 2] that connect the items of one entity which share a key."""
    item = rows.item.astype(np.int64)
    key = combined(split_mix_words(entity[item].astype(np.uint64)), rows.key)
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    return np.stack([item[order][1:][same], item[order][:-1][same]], axis=1)


def connected(parts: Ints, links: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the parts of items, numbered from zero, after links have joined some."""
    n_parts = int(parts.max(initial=-1)) + 1
    numbers = component_numbers(n_parts, parts[links[:, 0]], parts[links[:, 1]])
    return numbers.astype(np.int64)[parts]
