"""SampleRank for links: the weights of a `LinkModel` from items whose entities are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.kernels.clusterings.linkage import LinkArrays
from factorwise.kernels.clusterings.linkage_learning import (
    ACCEPTED,
    MISRANKED,
    PRECISION,
    RECALL,
    UPDATES,
    LessonArrays,
    learning_walk,
)
from factorwise.model.linkage import LinkModel
from factorwise.rng import Stream
from factorwise.types import Ints
from factorwise.world.links import LinkGraph

EACH = 5  # steps for an item in a pass, however many there are


class LinkPass(NamedTuple):
    """How one pass over the items went: the learning curve.

    start
        Where its walk began: every item by itself (``alone``), or the known entities (``truth``).
    value
        B-cubed F1 at its end.
    """

    number: int
    steps: int
    updates: int
    misranked: int
    accepted: float
    value: float
    start: str


@dataclass(frozen=True, slots=True)
class LinkLearner:
    """How weights of links are learned.

    passes, steps, fewest, most
        Walks, by turns from every item by itself and from the truth, each of ``steps`` steps per item, but of
        ``fewest`` at least and ``most`` at most, unless that were fewer than five per item.
    cap, margin
        Largest multiple of a gradient that one update adds, and the lead that a move which gains one item's
        worth of B-cubed F1 shall have.
    temperature
        Of the walk, which follows the weights as they are learned.
    own
        How often a cluster of its own is proposed to an item.
    """

    passes: int = 4
    steps: int = 25
    cap: float = 0.003
    margin: float = 1.0
    temperature: float = 0.3
    own: float = 0.1
    fewest: int = 5_000
    most: int = 100_000

    def __post_init__(self) -> None:
        for name in ("passes", "steps", "cap", "temperature", "fewest"):
            require(getattr(self, name) > 0, name, getattr(self, name), "greater than zero")
        require(self.margin >= 0.0, "margin", self.margin, "zero or more")
        require(0.0 < self.own < 1.0, "own", self.own, "between 0 and 1")
        require(self.most >= self.fewest, "most", self.most, f"at least fewest, {self.fewest}")

    def fit(
        self,
        graph: LinkGraph,
        levels: NDArray[np.uint8],
        truth: ArrayLike,
        model: LinkModel,
        *,
        seed: int = 0,
        first: int = 0,
        callback: Callable[[LinkPass], None] | None = None,
    ) -> LinkModel:
        """Return a model with the mean of the weights over all steps, starting from those of ``model``.

        truth
            The entity of each item, a number from 0 on; -1 where it is not known.
        first
            How many passes there were before: the next one begins alone if that is even, else from the truth.
        """
        entity = np.asarray(truth, np.int32)
        _check_lesson(graph, levels, entity, model)
        if not (entity >= 0).any():
            raise InvalidArgumentError("nothing can be learned: no item's entity is known.")
        rings = make_rings(graph)
        lesson = self._lesson(graph, levels, entity, model)
        stream = Stream(seed, 0x1EA2)
        alone = np.arange(graph.n_items)
        known = np.where(entity >= 0, entity, entity.max() + 1 + alone)
        most = max(self.most, EACH * graph.n_items)
        steps = int(np.clip(self.steps * graph.n_items, self.fewest, most))
        for number in range(first, first + self.passes):
            start, labels = ("truth", known) if number % 2 else ("alone", alone)
            place_in_rings(rings, labels)
            _tally_truth(lesson, rings.label)
            before = lesson.tally.copy()
            learning_walk(rings, lesson, stream.state, steps, np.zeros(2))
            done = (lesson.tally - before).tolist()
            if callback is not None:
                precision, recall = lesson.sums[PRECISION], lesson.sums[RECALL]
                value = 2.0 * precision * recall / (precision + recall) / int((entity >= 0).sum())
                share = done[ACCEPTED] / steps
                counts = steps, done[UPDATES], done[MISRANKED]
                callback(LinkPass(number + 1, *counts, share, float(value), start))
        mean = lesson.weights - lesson.drift / lesson.tally[0]
        return LinkModel(model.sizes, mean)

    def _lesson(
        self, graph: LinkGraph, levels: NDArray[np.uint8], entity: NDArray[np.int32], model: LinkModel
    ) -> LessonArrays:
        n = graph.n_items
        order = np.argsort(entity, kind="stable").astype(np.int32)
        order = order[entity[order] >= 0]
        counts = np.bincount(entity[order])
        return LessonArrays(
            pair=graph.pair,
            level=np.ascontiguousarray(levels, np.uint8),
            offset=model.offsets,
            weights=model.weights.copy(),
            drift=np.zeros(len(model.weights)),
            gradient=np.zeros(len(model.weights)),
            direction=np.zeros(len(model.weights)),
            entity=entity,
            entity_start=np.append(0, np.cumsum(counts)).astype(np.int64),
            entity_item=order,
            known=np.zeros(n, np.int64),
            squares=np.zeros(n, np.int64),
            sums=np.zeros(2),
            settings=np.array([self.cap, self.margin, self.temperature, self.own]),
            tally=np.zeros(4, np.int64),
        )


def make_rings(graph: LinkGraph) -> LinkArrays:
    """Make the arrays of a clustering in rings."""
    n = graph.n_items
    return LinkArrays(
        start=graph.start,
        neighbor=graph.neighbor,
        weight=np.ones(n, np.int32),
        sources=np.zeros(n, np.uint64),
        label=np.empty(n, np.int32),
        total=np.zeros(n, np.int64),
        held=np.zeros(n, np.uint64),
        after=np.empty(n, np.int32),
        before=np.empty(n, np.int32),
    )


def place_in_rings(arrays: LinkArrays, labels: Ints) -> None:
    """Set the clustering."""
    n = len(labels)
    order = np.argsort(labels, kind="stable").astype(np.int32)
    new = np.append(True, labels[order][1:] != labels[order][:-1])
    number = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    anchors = order[starts]
    following = np.append(order[1:], order[:1])
    following[np.append(starts[1:], n) - 1] = anchors
    arrays.label[order] = anchors[number]
    arrays.after[order] = following
    arrays.before[following] = order
    arrays.total[anchors] = np.bincount(number, weights=arrays.weight[order]).astype(np.int64)


def _check_lesson(
    graph: LinkGraph, levels: NDArray[np.uint8], entity: NDArray[np.int32], model: LinkModel
) -> None:
    """Complain of what would not fit: the walk itself checks nothing."""
    wanted = len(graph.first), len(model.sizes)
    if levels.shape != wanted:
        raise ShapeError(f"levels must be {wanted}, pairs by comparisons, but {levels.shape} were given.")
    if entity.shape != (graph.n_items,):
        raise ShapeError(f"{graph.n_items} items need an entity each, but {entity.shape} were given.")
    highest = levels.max(axis=0, initial=0).tolist()
    fit = all(high <= size for high, size in zip(highest, model.sizes, strict=True))
    require(fit, "levels", highest, f"at most {model.sizes}, the levels that the model has weights for")


def _tally_truth(lesson: LessonArrays, label: NDArray[np.int32]) -> None:
    """Count what is known of each cluster, and B-cubed, for a clustering."""
    known = lesson.entity >= 0
    clusters, entities = label[known].astype(np.int64), lesson.entity[known]
    sizes = np.diff(lesson.entity_start)
    cells, counts = np.unique(clusters * len(sizes) + entities, return_counts=True)
    squares = counts.astype(np.int64) ** 2
    lesson.known[:] = np.bincount(clusters, minlength=len(label))
    lesson.squares[:] = np.bincount(cells // len(sizes), weights=squares, minlength=len(label)).astype(
        np.int64
    )
    some = lesson.known > 0
    lesson.sums[PRECISION] = (lesson.squares[some] / lesson.known[some]).sum()
    lesson.sums[RECALL] = (squares / sizes[cells % len(sizes)]).sum()
