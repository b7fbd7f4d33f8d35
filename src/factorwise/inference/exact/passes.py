"""The two passes over the cliques of an elimination order, in segments if memory is short.

Inward, each clique multiplies its factors and the messages of the cliques before it, and sends a message to
the next. Outward, the tables are needed again, last clique first. If all of them fit the memory, they are
kept. Otherwise the order is cut into segments: inward, only the messages between segments are kept, and
outward, the tables of a segment are computed again. That doubles the time of the inward pass, and leaves in
memory one segment and the messages that cross a border.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from factorwise.errors import TreewidthError
from factorwise.inference.exact.elimination import GIBIBYTE, EliminationOrder, SumOut, require_possible
from factorwise.model.factor import Factor, product
from factorwise.types import Ints


@dataclass(frozen=True, slots=True)
class Plan:
    """An elimination order cut into segments.

    order
        The cliques, one per variable.
    receiver : int64[cliques]
        The clique that each clique sends its message to; -1 if nothing is left to send.
    borders
        First clique of each segment, then the number of cliques.
    needed
        Bytes that the tables of both passes take.
    """

    order: EliminationOrder
    receiver: Ints
    borders: tuple[int, ...]
    needed: int

    def require_memory(self, limit: int) -> None:
        """Refuse if the passes need more than ``limit`` bytes."""
        if self.needed > limit:
            raise TreewidthError(
                f"exact inference needs {self.needed} bytes ({self.needed / GIBIBYTE:.3g} GiB), more than"
                f" memory_limit={limit}: the best order found has treewidth {self.order.treewidth}, and its"
                f" largest clique a table of {self.order.largest} entries. Raise memory_limit, condition on"
                " some variables, or use an approximate method (belief propagation, sampling)."
            )


def plan_passes(order: EliminationOrder, cardinality: Ints, limit: int) -> Plan:
    """Cut an order into the fewest segments with which both passes fit ``limit`` bytes.

    If none fits, it returns the plan that needs the least memory.
    """
    count = len(order.cliques)
    place = {clique[0]: index for index, clique in enumerate(order.cliques)}
    receiver = np.array([place[c[1]] if len(c) > 1 else -1 for c in order.cliques], dtype=np.int64)
    message = [
        entries // int(cardinality[clique[0]])
        for clique, entries in zip(order.cliques, order.entries, strict=True)
    ]
    total = sum(order.entries)
    plans, pieces = [], 1
    while True:
        borders = _borders(order.entries, total // pieces)
        plans.append(Plan(order, receiver, borders, 8 * _entries_needed(order, message, receiver, borders)))
        if plans[-1].needed <= limit:
            return plans[-1]
        if pieces >= count:
            return min(plans, key=lambda plan: plan.needed)
        pieces *= 2


def _borders(entries: tuple[int, ...], share: int) -> tuple[int, ...]:
    """Cut the order so that no segment has tables with more than ``share`` entries."""
    borders, held = [0], 0
    for index, size in enumerate(entries):
        if held and held + size > share:
            borders.append(index)
            held = 0
        held += size
    return (*borders, len(entries))


def _entries_needed(
    order: EliminationOrder, message: list[int], receiver: Ints, borders: tuple[int, ...]
) -> int:
    """Count the entries held at once: a segment, messages in both directions, and three working tables."""
    segment = np.repeat(np.arange(len(borders) - 1), np.diff(borders)).tolist()
    held = [0] * (len(borders) - 1)
    crossing = 0
    for index, size in enumerate(message):
        held[segment[index]] += order.entries[index] + 2 * size
        if receiver[index] >= 0 and segment[receiver[index]] != segment[index]:
            crossing += 2 * size
    return max(held, default=0) + crossing + 3 * order.largest


class CliqueTable(NamedTuple):
    """A clique on the outward pass.

    place
        Its number in the order.
    bucket
        Its factors times the messages to it, with the variable that is eliminated first on axis 0.
    message
        Its message: the bucket with that variable eliminated.
    """

    place: int
    bucket: Factor
    message: Factor


class TreePasses:
    """The completed inward pass, and the outward pass.

    total
        What remains when all variables are eliminated: log Z, or the best score.
    """

    def __init__(self, plan: Plan, factors: Iterable[Factor], out: SumOut) -> None:
        self.plan, self._out = plan, out
        place = {clique[0]: index for index, clique in enumerate(plan.order.cliques)}
        self._own: list[list[Factor]] = [[] for _ in place]
        rest = []
        for factor in factors:
            if factor.scope:
                self._own[min(place[v] for v in factor.scope)].append(factor)
            else:
                rest.append(factor)
        self.senders: list[list[int]] = [[] for _ in place]
        for index, target in enumerate(plan.receiver.tolist()):
            if target >= 0:
                self.senders[target].append(index)
        self._messages: dict[int, Factor] = {}
        self._last: list[CliqueTable] = []
        for first, last in zip(plan.borders[:-1], plan.borders[1:], strict=True):
            self._last = self._segment(first, last, keep=last == plan.borders[-1])
        roots = np.flatnonzero(plan.receiver < 0).tolist()
        total = product([*rest, *(self._messages[root] for root in roots)])
        self.total = require_possible(float(total.table))

    def outward(self) -> Iterator[CliqueTable]:
        """Yield every clique, last first; the receiver may overwrite its tables."""
        borders = self.plan.borders
        for first, last in zip(reversed(borders[:-1]), reversed(borders[1:]), strict=True):
            tables = self._segment(first, last, keep=True) if last != borders[-1] else self._last
            self._last = []
            while tables:
                yield tables.pop()

    def _segment(self, first: int, last: int, *, keep: bool) -> list[CliqueTable]:
        """Compute the tables of some cliques, and store the messages that leave the segment."""
        tables = []
        cliques = self.plan.order.cliques
        for index in range(first, last):
            incoming = [self._messages[sender] for sender in self.senders[index]]
            bucket = product([*self._own[index], *incoming], cliques[index])
            message = self._messages[index] = self._out(bucket, cliques[index][0])
            for sender in self.senders[index]:
                if sender >= first:
                    del self._messages[sender]
            if keep:
                tables.append(CliqueTable(index, bucket, message))
        return tables
