r"""The distribution of an adaptive split-merge proposer over the jumps from a world.

.. math:: J(\cdot \mid w; \lambda) = \beta_s Q_{split} + \beta_m Q_{merge} + \beta_r Q_{move}, \quad
          Q_{split}(c) \propto e^{\lambda_s \cdot \phi_w(c)}, \quad
          Q_{merge}(c, d) \propto e^{\lambda_m \cdot \phi_b(c, d)}

A share of the choices is made uniformly, so that every jump stays possible. A move takes a part of a cluster,
chosen like one to split, to another cluster, chosen by its affinity with the part. Kinds that have nothing to
propose leave their share to the others.

Implements: rohanimanesh2009inference, Eq. 10, 11; moves are an extension that it names as future work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.types import Float64s
from factorwise.validation import check_number

Parts = Literal["uniform", "guided"]


@dataclass(frozen=True, eq=False)
class JumpWeights:
    """The weights that an adaptive proposer has learned, one per feature for splits and one for merges.

    names
        Names of the features (see `JumpFeatures`); weights fit any document whose features have the same
        names.
    split, merge : float64[features]
        How much a feature of a cluster favors splitting it, and one of two clusters favors merging them.
    kinds
        Odds of splits, merges and moves (beta and 1 - beta in the paper, which has no moves).
    """

    names: tuple[str, ...]
    split: Float64s
    merge: Float64s
    kinds: tuple[float, float, float] = (0.5, 0.5, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        for name in ("split", "merge"):
            values = np.array(getattr(self, name), np.float64)
            values.flags.writeable = False
            if values.shape != (len(self.names),):
                raise ShapeError(
                    f"{len(self.names)} features need as many {name} weights, but the array has shape"
                    f" {values.shape}."
                )
            if not np.isfinite(values).all():
                raise InvalidArgumentError(f"the {name} weights must be finite numbers.")
            object.__setattr__(self, name, values)
        object.__setattr__(self, "kinds", checked_kinds(self.kinds))

    @classmethod
    def zero(cls, names: tuple[str, ...], kinds: tuple[float, float, float] = (0.5, 0.5, 0.0)) -> JumpWeights:
        """Return weights of zero, which make the uniform split-merge proposer."""
        return cls(names, np.zeros(len(names)), np.zeros(len(names)), kinds)

    def with_vector(self, vector: ArrayLike) -> JumpWeights:
        """Return a copy with the split and merge weights of one vector."""
        values = np.asarray(vector, np.float64)
        return replace(self, split=values[: len(self.names)], merge=values[len(self.names) :])

    @property
    def vector(self) -> Float64s:
        """Split weights, then merge weights (a copy)."""
        return np.concatenate([self.split, self.merge])


def checked_kinds(given: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the odds of splits, merges and moves; splits and merges must both be possible."""
    try:
        kinds = tuple(float(odds) for odds in given)
    except (TypeError, ValueError):
        kinds = ()
    fits = len(kinds) == 3 and all(0 <= odds < math.inf for odds in kinds) and min(kinds[:2]) > 0
    if not fits:
        raise InvalidArgumentError(
            f"kinds must be the odds of splits, merges and moves, but {given!r} was given: the first"
            " two must be positive, because a split undoes a merge, and the third zero or more."
        )
    return kinds  # type: ignore[return-value]


def check_law(explore: float, parts: str) -> None:
    """Refuse values that no proposer can have."""
    check_number("explore", explore, least=0, most=1)
    require(parts in get_args(Parts), "parts", parts, f"one of {list(get_args(Parts))}")
