"""The factors that a diff touches, listed one by one, for inference that examines only some of them.

`Template.difference` returns the total change of the touched factors; `Contributions` lists the change of
each. The pair of two items is one factor, however many templates score it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.model.weights import SparseVector
from factorwise.types import Bools, Float64s, Int8s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """Signed changes of the touched factors.

    gain : float64[factors]
        Change of each factor's score; they sum to the gain of the diff.
    constant : float64[factors]
        The part of the gain that no weight multiplies.
    stratum : int8[factors]
        0 for factors that the diff creates (the new cluster), 1 for those it removes (the old cluster); 0 for
        diffs without this distinction.
    certain : bool[factors]
        Factors that are always examined: hard constraints, and factors of which a diff touches only a few.
    bound : float64[factors]
        Upper limit of the absolute gain, known without examining the factor; ``inf`` if undeclared.
    owner, index, value : int64[entries], int64[entries], float64[entries]
        Changes of statistics: the factor, the weight, and the amount.
    of_pairs
        Whether the factors are the pairs of items that the diff joins or separates, in the order of
        `factorwise.model.clusterings.partition_templates.touched_pairs`.
    """

    gain: Float64s
    constant: Float64s
    stratum: Int8s
    certain: Bools
    bound: Float64s
    owner: Int64s
    index: Int64s
    value: Float64s
    of_pairs: bool = False

    @classmethod
    def of(
        cls,
        gain: ArrayLike,
        *,
        stratum: ArrayLike | None = None,
        certain: ArrayLike | None = None,
        bound: ArrayLike = np.inf,
    ) -> Contributions:
        """List changes of score that no weight multiplies."""
        values = np.asarray(gain, dtype=np.float64)
        count, nothing = len(values), np.zeros(0, dtype=np.int64)
        return cls(
            gain=values,
            constant=values,
            stratum=np.zeros(count, np.int8) if stratum is None else np.asarray(stratum, np.int8),
            certain=np.zeros(count, np.bool_) if certain is None else np.asarray(certain, np.bool_),
            bound=np.broadcast_to(np.asarray(bound, dtype=np.float64), (count,)),
            owner=nothing,
            index=nothing,
            value=np.zeros(0),
        )

    @classmethod
    def weighted(
        cls, count: int, owner: Int64s, index: Int64s, value: Float64s, weights: Float64s, **more: Any
    ) -> Contributions:
        """List ``count`` factors by their statistics; other arguments as for `of`, and ``constant``."""
        constant = more.pop("constant", None)
        fixed = np.zeros(count) if constant is None else np.asarray(constant, dtype=np.float64)
        gain = np.bincount(owner, weights=value * weights[index], minlength=count) + fixed
        return replace(cls.of(gain, **more), constant=fixed, owner=owner, index=index, value=value)

    @classmethod
    def whole(cls, template: Any, world: Any, diff: Any, weights: Float64s) -> Contributions:
        """Make all that a diff changes in a template one factor, which is always examined."""
        change = template.difference(world, diff)
        owner = np.zeros(len(change.index), dtype=np.int64)
        constant = [template.constant_gain(world, diff)]
        return cls.weighted(
            1, owner, change.index, change.value, weights, constant=constant, certain=[True], bound=np.inf
        )

    @classmethod
    def joined(cls, parts: Sequence[Contributions]) -> Contributions:
        """Combine lists of factors; pairs come first, and what several templates say of a pair is added."""
        pairs = [part for part in parts if part.of_pairs]
        rest = [part for part in parts if not part.of_pairs]
        if len(pairs) > 1:
            first = pairs[0]
            pairs = [
                replace(
                    first,
                    gain=np.sum([part.gain for part in pairs], axis=0),
                    constant=np.sum([part.constant for part in pairs], axis=0),
                    bound=np.sum([part.bound for part in pairs], axis=0),
                    owner=np.concatenate([part.owner for part in pairs]),
                    index=np.concatenate([part.index for part in pairs]),
                    value=np.concatenate([part.value for part in pairs]),
                )
            ]
        listed = pairs + rest
        if len(listed) == 1:
            return listed[0]
        starts = np.cumsum([0, *(len(part) for part in listed)]).tolist()
        return cls(
            gain=np.concatenate([part.gain for part in listed]),
            constant=np.concatenate([part.constant for part in listed]),
            stratum=np.concatenate([part.stratum for part in listed]),
            certain=np.concatenate([part.certain for part in listed]),
            bound=np.concatenate([part.bound for part in listed]),
            owner=np.concatenate(
                [part.owner + start for part, start in zip(listed, starts[:-1], strict=True)]
            ),
            index=np.concatenate([part.index for part in listed]),
            value=np.concatenate([part.value for part in listed]),
        )

    def __len__(self) -> int:
        return len(self.gain)

    def shifted(self, offset: int) -> Contributions:
        """Return the changes with weight indices of the whole vector instead of a template's block."""
        return replace(self, index=self.index + offset)

    def total(self, multiplier: Float64s | None = None) -> float:
        """Return the sum of the changes, each times its ``multiplier``.

        It is minus infinity if one of them forbids the diff.
        """
        taken = self.gain if multiplier is None else self.gain[multiplier != 0.0]
        if (taken == -np.inf).any():
            return -np.inf
        return float(taken.sum() if multiplier is None else taken @ multiplier[multiplier != 0.0])

    def gradient(self, multiplier: Float64s) -> SparseVector:
        """Return the sum of the changes of statistics, each factor times its ``multiplier``."""
        return SparseVector.of(self.index, self.value * multiplier[self.owner])


def as_contributions(gains: Contributions | ArrayLike) -> Contributions:
    """Return an array of signed changes as contributions without bounds or strata."""
    return gains if isinstance(gains, Contributions) else Contributions.of(gains)
