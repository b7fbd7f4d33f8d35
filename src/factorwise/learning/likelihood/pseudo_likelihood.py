r"""Pseudo-likelihood: the probability of each hidden variable given the true labels of all others.

.. math:: \mathrm{PL}(\theta) = \sum_t \sum_{i\ \mathrm{hidden}} \log p_\theta(w_{ti} \mid w_{t,-i})

The only sums are over the labels of single variables, so it needs no oracle, and any template will do. The
neighbors' labels never change, so the table entry that belongs to each label of each variable is computed
once; a value and a gradient are then two sparse products between table entries and labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from factorwise.errors import InvalidArgumentError
from factorwise.learning.likelihood.marginal_likelihood import (
    ObservedLabels,
    possible_constant,
    training_pairs,
)
from factorwise.model.labels.base import ScopedTemplate, TableGroup
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.model import Model
from factorwise.model.template import AnyTemplate
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int64s
from factorwise.variables.variable import Variables
from factorwise.world.assignment import Assignment


class PseudoLikelihood:
    """The pseudo-likelihood of training worlds as a function of the flat weight vector.

    If no two hidden variables share a factor, it is the log-likelihood. Otherwise its maximum is near the
    true weights if there are many worlds, at the cost of one pass over the factors, whatever the graph.
    Nothing is learned about a variable whose label hard constraints determine from the others.

    model
        One model for all worlds, or one per world with the same blocks of weights. The models' own weights
        are neither read nor changed.
    worlds
        Assignments with the true labels, all of which must be known.
    """

    def __init__(self, model: Model | Sequence[Model], worlds: Sequence[Assignment | ObservedLabels]) -> None:
        pairs = training_pairs(model, worlds)
        self.blocks = pairs[0][0].blocks
        together: dict[tuple[int, int], tuple[Model, list[Assignment]]] = {}
        for number, (own, truth) in enumerate(pairs):
            _require_known(number, truth)
            possible_constant(own, truth.world, number)
            key = (id(own), id(truth.world.variables))
            together.setdefault(key, (own, []))[1].append(truth.world)
        self._terms = [_Term(own, members) for own, members in together.values()]

    def value_and_gradient(self, weights: ArrayLike) -> tuple[float, Float64s]:
        """Return the log pseudo-likelihood and its gradient, for maximization."""
        flat = self.blocks.flat(weights)
        gradient = np.zeros(len(flat))
        value = sum(term.add(flat, gradient) for term in self._terms)
        return float(value), gradient

    def loss(self, weights: ArrayLike) -> tuple[float, Float64s]:
        """Return the negative log pseudo-likelihood and its gradient, for minimization."""
        value, gradient = self.value_and_gradient(weights)
        return -value, -gradient


class _Slots:
    """A slot for each label of each movable variable of each world, in which local scores are summed.

    labels : int64[worlds, variables]
        The true labels.
    count
        Number of slots.
    starts : int64[worlds x movable variables]
        First slot of each variable, ordered by world.
    true : int64[worlds x movable variables]
        Slot of each variable's true label.
    """

    def __init__(self, variables: Variables, labels: Int64s) -> None:
        self.labels = labels
        self.cardinality = variables.cardinality
        movable = variables.movable
        sizes = self.cardinality[movable]
        self.per_world = int(sizes.sum())
        self.count = len(labels) * self.per_world
        self._first = np.full(len(variables), -1, dtype=np.int64)
        self._first[movable] = np.cumsum(sizes) - sizes
        self.starts = self._in_every_world(self._first[movable]).ravel()
        self.true = self.starts + labels[:, movable].ravel()

    def spread(self, variables: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """List all labels of the movable ones among ``variables``, in which a variable may occur repeatedly.

        For each label, return the position of its variable in ``variables``, its code, and its slot in each
        world, int64[worlds, labels].
        """
        position = np.flatnonzero(self._first[variables] >= 0)
        sizes = self.cardinality[variables[position]]
        code = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        position = np.repeat(position, sizes)
        return position, code, self._in_every_world(self._first[variables[position]] + code)

    def _in_every_world(self, slot: Int64s) -> Int64s:
        world = np.arange(len(self.labels), dtype=np.int64)[:, None]
        return np.asarray(world * self.per_world + slot, dtype=np.int64)


class _Part(Protocol):
    """A template as entries that are linear in its weights, and the slots to which entries belong.

    count
        Number of entries.
    slot, entry : int64[links]
        Each entry is added to the score of the slot beside it.
    """

    count: int
    slot: Int64s
    entry: Int64s

    def scores(self, weights: Float64s) -> Float64s:
        """Return the score of each entry under the template's own weights."""
        raise NotImplementedError

    def adjoint(self, array: Float64s) -> SparseVector:
        """Apply the transpose of the linear part of `scores`."""
        raise NotImplementedError


class _ScopedPart:
    """Static factors: the entries are those of the tables."""

    def __init__(self, template: ScopedTemplate, variables: Variables, slots: _Slots) -> None:
        self.template, self.variables = template, variables
        groups = list(template.tables(variables, np.zeros(template.size)))
        self.shapes = [group.tables.shape for group in groups]
        self.ends = np.cumsum([group.tables.size for group in groups])
        self.count = int(self.ends[-1]) if groups else 0
        links = [
            link
            for group, end in zip(groups, self.ends, strict=True)
            for link in _slices(group, int(end) - group.tables.size, slots)
        ]
        self.slot = np.concatenate([np.zeros(0, dtype=np.int64), *(slot.ravel() for slot, _ in links)])
        self.entry = np.concatenate([np.zeros(0, dtype=np.int64), *(entry.ravel() for _, entry in links)])

    def scores(self, weights: Float64s) -> Float64s:
        tables = [group.tables.ravel() for group in self.template.tables(self.variables, weights)]
        return np.concatenate([np.zeros(0), *tables])

    def adjoint(self, array: Float64s) -> SparseVector:
        pieces = np.split(array, self.ends[:-1]) if self.shapes else []
        shaped = [piece.reshape(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]
        return self.template.adjoint(self.variables, shaped)


class _CountPart:
    """Counts in groups of any size: the entries are the counts."""

    def __init__(self, template: Cardinality, variables: Variables, slots: _Slots) -> None:
        self.template = template
        self.count = len(template.basis)
        members = template.members(variables)
        has = (slots.labels[:, members] == template.code).astype(np.int64)
        rest = np.repeat(np.add.reduceat(has, template.start[:-1], axis=1), np.diff(template.start), axis=1)
        rest -= has
        position, code, slot = slots.spread(members)
        self.slot = slot.ravel()
        self.entry = (rest[:, position] + (code == template.code)).ravel()

    def scores(self, weights: Float64s) -> Float64s:
        return self.template.potentials(weights)

    def adjoint(self, array: Float64s) -> SparseVector:
        return self.template.adjoint(array)


class _DifferencePart:
    """Any other template: the entries are the slots, scored by the change from relabeling one variable."""

    def __init__(self, template: AnyTemplate, worlds: Sequence[Assignment], slots: _Slots) -> None:
        self.count = slots.count
        self.slot = self.entry = np.arange(slots.count, dtype=np.int64)
        self.constant = np.zeros(slots.count)
        alone = Model([template])
        rows, columns, values = [], [], []
        for slot, (world, variable, code) in enumerate(_relabelings(worlds)):
            diff = world.relabel([variable], [code])
            difference = alone.difference(world, diff)
            self.constant[slot] = template.constant_gain(world, diff)
            rows.append(np.full(len(difference.index), slot))
            columns.append(difference.index)
            values.append(difference.value)
        cells = (np.concatenate(rows), np.concatenate(columns))
        self.design = csr_array((np.concatenate(values), cells), shape=(slots.count, template.size))

    def scores(self, weights: Float64s) -> Float64s:
        return np.asarray(self.design @ weights + self.constant)

    def adjoint(self, array: Float64s) -> SparseVector:
        return SparseVector.from_dense(self.design.T @ array)


class _Term:
    """All worlds with the same model and variables."""

    def __init__(self, model: Model, worlds: Sequence[Assignment]) -> None:
        variables = worlds[0].variables
        self.model = model
        self.slots = _Slots(variables, np.array([world.values for world in worlds], dtype=np.int64))
        self.parts = [_part(template, worlds, self.slots) for template in model.templates]
        self.ends = np.cumsum([part.count for part in self.parts])
        begins = self.ends - [part.count for part in self.parts]
        entry = np.concatenate([part.entry + begin for part, begin in zip(self.parts, begins, strict=True)])
        slot = np.concatenate([part.slot for part in self.parts])
        self.meets = csr_array(
            (np.ones(len(slot)), (slot, entry)), shape=(self.slots.count, int(self.ends[-1]))
        )

    def add(self, weights: Float64s, gradient: Float64s) -> float:
        """Return the value and add the gradient in place."""
        starts, true = self.slots.starts, self.slots.true
        if not len(starts):
            return 0.0
        blocks = [weights[offset : offset + template.size] for template, offset in self.model.parts()]
        tables = [part.scores(block) for part, block in zip(self.parts, blocks, strict=True)]
        scores = self.meets @ np.concatenate(tables)
        sizes = np.diff(starts, append=len(scores))
        peak = np.maximum.reduceat(scores, starts)
        chance = np.exp(scores - np.repeat(peak, sizes))
        total = np.add.reduceat(chance, starts)
        slope = chance / np.repeat(-total, sizes)
        slope[true] += 1.0
        pieces = np.split(self.meets.T @ slope, self.ends[:-1])
        for part, piece, (_, offset) in zip(self.parts, pieces, self.model.parts(), strict=True):
            part_gradient = part.adjoint(piece)
            gradient[part_gradient.index + offset] += part_gradient.value
        return float((scores[true] - peak - np.log(total)).sum())


def _part(template: AnyTemplate, worlds: Sequence[Assignment], slots: _Slots) -> _Part:
    variables = worlds[0].variables
    if isinstance(template, ScopedTemplate):
        return _ScopedPart(template, variables, slots)
    if isinstance(template, Cardinality):
        return _CountPart(template, variables, slots)
    return _DifferencePart(template, worlds, slots)


def _slices(group: TableGroup, begin: int, slots: _Slots) -> Iterator[tuple[Int64s, Int64s]]:
    """For each position in the scopes, yield slots and their table entries, with true labels elsewhere."""
    shape = slots.cardinality[group.scopes]
    stride = np.ones_like(shape)
    stride[:, :-1] = np.cumprod(shape[:, :0:-1], axis=1)[:, ::-1]
    labels = slots.labels[:, group.scopes]
    at_truth = begin + group.which * group.tables.shape[1] + (labels * stride).sum(axis=2)
    for axis in range(group.scopes.shape[1]):
        factor, code, slot = slots.spread(group.scopes[:, axis])
        yield slot, at_truth[:, factor] + (code - labels[:, factor, axis]) * stride[factor, axis]


def _relabelings(worlds: Sequence[Assignment]) -> Iterator[tuple[Assignment, int, int]]:
    """Yield world, variable and code of each slot."""
    for world in worlds:
        for variable in world.variables.movable.tolist():
            for code in range(int(world.variables.cardinality[variable])):
                yield world, variable, code


def _require_known(number: int, truth: ObservedLabels) -> None:
    unknown = truth.world.variables.hidden[~truth.known[truth.world.variables.hidden]]
    if len(unknown):
        column, row = truth.world.variables.locate(int(unknown[0]))
        raise InvalidArgumentError(
            f"row {row} of column {column!r} in world {number} has no known label ({len(unknown)} in"
            " total), but pseudo-likelihood reads the labels of all neighbors: fill them in, or train"
            " with LogLikelihood, which sums over unknown labels."
        )
