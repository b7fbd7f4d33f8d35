"""Which time a population comes from at each time: the one before, or that above it in a tree."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.inference.exact import TreeOracle
from factorwise.inference.message_passing.projection import BaseModel, ChainBase, GraphBase
from factorwise.io.listing import some
from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats


class Structure:
    """Steps between the times of one sequence.

    times
    parents
        The time that each time comes from; the root has none. Without any, times follow one another.

    Attributes
    ----------
    steps
        Pairs of the number of a time and that of the next.
    names
        Of the steps: the time at which each begins, in a tree the time at which it ends.
    """

    def __init__(self, times: tuple[str, ...], parents: Mapping[str, str] | None = None) -> None:
        self.times = times
        self.chain = parents is None
        if parents is None:
            self.steps = [(time, time + 1) for time in range(len(times) - 1)]
            self.names = times[:-1]
            self.roots = [0]
            return
        number = {label: index for index, label in enumerate(times)}
        own = {after: before for after, before in parents.items() if after in number}
        for after, before in own.items():
            if before not in number:
                raise InvalidArgumentError(
                    f"time {after!r} comes from time {before!r}, which has no counts: give counts for it, all"
                    " of them empty if none were made."
                )
        refuse_cycles(own)
        self.steps = [(number[before], number[after]) for after, before in own.items()]
        self.names = tuple(own)
        self.roots = [number[label] for label in times if label not in own]

    def base(self, initial: Floats, transitions: Floats) -> BaseModel:
        """Return the model of one member.

        initial : float64[places]
            Log-probabilities of the places of the root.
        transitions : float64[steps, places, places]
            Log-probabilities, in the order of the steps.
        """
        if self.chain:
            node = np.zeros((len(self.times), len(initial)))
            node[0] = initial
            return ChainBase(node, transitions)
        factors = [((root,), initial) for root in self.roots]
        pairs = zip(self.steps, transitions, strict=True)
        graph = FactorGraph.build(np.full(len(self.times), len(initial)), [*factors, *pairs])
        return GraphBase(graph, TreeOracle())


def refuse_cycles(parents: Mapping[str, str]) -> None:
    """Refuse times that come from themselves."""
    rooted: set[str] = set()
    for start in parents:
        way: dict[str, None] = {}
        time: str | None = start
        while time is not None and time not in way and time not in rooted:
            way[time] = None
            time = parents.get(time)
        rooted |= way.keys()
        if time in way:
            circle = list(way)[list(way).index(time) :]
            through = f", by way of {some(circle[1:])}" if len(circle) > 1 else ""
            raise InvalidArgumentError(
                f"time {time!r} comes from itself{through}: a tree has no circles. Correct the parents."
            )
