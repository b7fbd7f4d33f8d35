"""Split-merge with restricted Gibbs scans, the proposal of Jain and Neal.

See `kernels.clusterings.restricted`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from factorwise.errors import NoCompiledFormError
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.plain_parts import plain_templates
from factorwise.inference.mcmc.proposals.partition_moves import PartitionMove
from factorwise.kernels.clusterings.restricted import draw_restricted
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.model.model import Model


@dataclass(frozen=True)
class RestrictedGibbs(PartitionMove):
    """Split or merge the clusters of two random items, where the model guides the split.

    model
        The model that guides the scans (at temperature 1: the Hastings ratio corrects for any other).
    scans
        Number of scans between the random launch state and the last one.
    """

    model: Model
    scans: int = 3
    changes = "many"
    crosses_blocks = True

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a split or a merge, with scans by the walk's templates."""
        if parts.model is not None and parts.model is not self.model:
            raise NoCompiledFormError(
                "RestrictedGibbs has another model than the walk: build it with the kernel's model, or"
                " use engine='plain'."
            )
        if any("gains" not in program.functions for program in parts.templates):
            raise NoCompiledFormError(
                "RestrictedGibbs has no compiled form for models with tables or for learning: leave it"
                " out of the mixture, or use engine='plain'."
            )
        arrays = {
            "apply": Pointers([parts.world.program()], ("apply",)),
            "templates": Pointers(parts.templates, ("gains", "applied")),
            "scans": [self.scans],
            "types": [parts.world.n_types],
            "order": np.zeros(parts.world.n_items, np.int32),
            "home": np.zeros(parts.world.n_items, np.int32),
        }
        return Program(draw=draw_restricted, arrays=arrays, name="restricted Gibbs")

    def _surroundings(self, world: Any) -> Surroundings:
        return Surroundings(world, None, plain_templates(self.model, world))
