"""The order of times: a chain, or a tree in which each time has a parent."""

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
        Names of the times.
    parents
        The parent of each time but the root. Without parents, the times form a chain.

    Attributes
    ----------
    steps
        Pairs of indices, of a time and of the time that follows it.
    names
        Names of the steps: the time at which each begins or, in a tree, at which it ends.
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
                    f"the parent of time {after!r} is time {before!r}, which has no counts: add it to the"
                    " counts, with empty counts if none were made."
                )
        check_acyclic(own)
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


def check_acyclic(parents: Mapping[str, str]) -> None:
    """Raise an error if a time is its own ancestor."""
    checked: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        time: str | None = start
        while time is not None and time not in path and time not in checked:
            path[time] = None
            time = parents.get(time)
        checked |= path.keys()
        if time in path:
            cycle = list(path)[list(path).index(time) :]
            through = f" through {some(cycle[1:])}" if len(cycle) > 1 else ""
            raise InvalidArgumentError(
                f"time {time!r} is its own ancestor{through}, but a tree has no cycles. Correct the parents."
            )
