r"""The features that an adaptive proposer reads: features of one cluster, and of pairs of clusters.

Both are statistics of a model per pair of items, so that large and small clusters are comparable:

.. math:: \phi_w(c) = \frac{\phi(c) - \sum_{i \in c} \phi(\{i\})}{|c| (|c| - 1) / 2}, \qquad
          \phi_b(c, d) = \frac{\phi(c \cup d) - \phi(c) - \phi(d)}{|c|\,|d|}

For a factor per pair of items these are its means over the pairs within c and between c and d. One more
feature each is the logarithm of the size, :math:`\log |c|` and :math:`\log |c|\,|d|`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.kernels.compile.binding import Frame, Framed
from factorwise.kernels.compile.programs import Program
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.template import AnyTemplate
from factorwise.types import Int64s
from factorwise.world.partition import Partition


class JumpFeatures:
    """Features of clusters and of pairs of clusters, from the statistics of a model.

    model
        Its templates must score clusters one by one, so that the members of two clusters are enough to
        describe them. Its weights are not used.
    chosen
        Which statistics to use, by the names of their weights; all by default.

    columns : int64[.]
        Positions of the chosen statistics in the model's weight vector.
    names
        Names of the features: those of the statistics, then the logarithm of the size.
    """

    def __init__(self, model: Model, chosen: Callable[[str], bool] | None = None) -> None:
        names = [model.weight_name(index) for index in range(model.blocks.size)]
        self.model = model
        self.columns = np.array(
            [index for index, name in enumerate(names) if chosen is None or chosen(name)], np.int64
        )
        if len(self.columns) == 0:
            raise InvalidArgumentError(
                f"none of the model's {len(names)} statistics was chosen: choose from names such as"
                f" {names[:5]}."
            )
        self.names = (*(names[index] for index in self.columns), "log size")

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.names)

    def seen(self, world: Partition, *, pairwise: bool) -> SeenStatistics:
        """Return the chosen statistics that are sums over pairs of items, or the others.

        pairwise
            Whether to return those over pairs.
        """
        found: list[AnyTemplate] = []
        index, feature, size = list[int](), list[int](), 0
        where = {int(column): number for number, column in enumerate(self.columns)}
        for template, offset in self.model.parts():
            for piece in template.pieces() if hasattr(template, "pieces") else [template]:
                own = [k for k in range(piece.size) if offset + k in where]
                if own and getattr(piece, "pairwise", False) == pairwise:
                    index += [size + k for k in own]
                    feature += [where[offset + k] for k in own]
                    found.append(piece)
                    size += piece.size
                offset += piece.size
        frame = world.frame(np.zeros(2, np.uint64), weights=size)
        templates: list[Program] = []
        if found:
            programs = model_programs(Model(found), world)
            frame = frame._replace(world=programs.arrays)
            templates = [Framed(program.for_learning(), frame) for program in programs.templates]
        mute = [program.name for program in templates if "gradient" not in program.functions]
        if mute:
            raise NoCompiledFormError(
                f"{mute[0]} do not compute how statistics change, so they cannot be features: choose"
                " others with JumpFeatures(model, chosen), or give the program a function gradient."
            )
        return SeenStatistics(templates, frame, np.array(index, np.int64), np.array(feature, np.int64))


class SeenStatistics(NamedTuple):
    """Statistics of a world, computed by the programs of their templates.

    templates, frame
        The programs, and the frame whose arrays they read.
    at, place : int64[.], int64[.]
        Positions of the chosen statistics in the gradient, and their numbers as features.
    """

    templates: Sequence[Program]
    frame: Frame
    at: Int64s
    place: Int64s
