"""Check that a transition kernel leaves the exact distribution invariant, with the functions of its walk.

The functions of all parts (proposer or choices, templates, acceptance, world) run interpreted, in the loop
that is otherwise compiled, along every path of their random draws. All paths of one step from each world give
the row of its transition matrix. For a kernel with a part without a program, its ``step`` is called.

>>> from factorwise import Model, Partition
>>> from factorwise.inference.exact.clusterings import all_partitions
>>> from factorwise.inference.mcmc import Metropolis, PartitionMixture, RelocateToItem, RelocateToNew
>>> from factorwise.model.templates import ClusterSize
>>> model = Model([ClusterSize()], [0.5, -0.3])
>>> check_walk(Metropolis(model, PartitionMixture([RelocateToItem(), RelocateToNew()])), all_partitions(3))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, TemplateError
from factorwise.inference.mcmc.branches import Branches, every_path
from factorwise.inference.mcmc.walk import Walk
from factorwise.testing.proposers import exact_distribution


def transition_matrix(kernel: Any, worlds: Sequence[Any], temperature: float = 1.0) -> NDArray[np.float64]:
    """Return the probabilities of one step from each of ``worlds`` to every other.

    kernel
        A transition kernel.
    worlds
        All worlds that a step from one of them can reach.
    """
    position = {world.canonical(): index for index, world in enumerate(worlds)}
    matrix = np.zeros((len(worlds), len(worlds)))
    step = _one_step(kernel, worlds[0], temperature)
    for row, world in enumerate(worlds):
        for end, probability in every_path(partial(step, world)):
            if end not in position:
                raise InvalidArgumentError(
                    f"a step leads from {world!r} out of the given worlds: give all worlds."
                )
            matrix[row, position[end]] += probability
    return matrix


def _one_step(kernel: Any, world: Any, temperature: float) -> Callable[[Any, Branches], Any]:
    """Return a function that makes one step from a world along one path and returns the new world."""
    try:
        walk = Walk(kernel, world, interpreted=True)
    except (AttributeError, NoCompiledFormError, TemplateError):  # some part has no program

        def decide(world: Any, branches: Branches) -> Any:
            step = kernel.step(branches, world, temperature)
            return world.after(step.diff).canonical() if step.accepted else world.canonical()

        return decide

    def walk_on(world: Any, branches: Branches) -> Any:
        walk.reset(world)
        walk.advance(branches, temperature, 1)
        return walk.view.canonical()

    return walk_on


def check_walk(
    kernel: Any,
    worlds: Sequence[Any],
    *,
    temperatures: Sequence[float] = (1.0, 0.7, 2.0),
    tolerance: float = 1e-12,
    irreducible: bool = True,
) -> None:
    """Raise AssertionError unless one step leaves exp(score / temperature) invariant.

    worlds
        All worlds; take few enough to enumerate. Five items usually suffice to detect an error.
    irreducible
        Whether every world must be reachable from every other.
    """
    for temperature in temperatures:
        matrix = transition_matrix(kernel, worlds, temperature)
        target = exact_distribution(kernel.model, worlds, temperature)
        error = float(np.abs(target @ matrix - target).max())
        assert error <= tolerance, (
            f"one step changes the distribution by {error:.1e} at temperature {temperature}: check the"
            " ratio of the move, what gains leave out, and choices that are not the same from every"
            " world that they can lead to."
        )
    if irreducible:
        often = np.linalg.matrix_power((matrix + np.eye(len(worlds))) / 2.0, 2 * len(worlds))
        assert (often > 0.0).all(), "some worlds cannot be reached from others: a move lacks its way back."
