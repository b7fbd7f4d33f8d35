"""What every update rule offers, and what can be read from its arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import require
from factorwise.kernels.clusterings.updates import KIND, STEPS, UpdateArrays


class RuleCode(NamedTuple):
    """A rule as its kernel sees it.

    kind
        Which formula.
    settings
        By place in `UpdateArrays.settings`; those not named are zero.
    second
        What `UpdateArrays.second` holds before the first update.
    """

    kind: int
    settings: Mapping[int, float]
    second: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRule(ABC):
    """How a violated ranking corrects the weights. Immutable: what is learned is in the arrays."""

    @abstractmethod
    def code(self) -> RuleCode:
        """Return the rule as its kernel sees it."""

    def arrays(self, size: int) -> UpdateArrays:
        """Return arrays for ``size`` weights of zero; to start from others, write them into ``weights``."""
        require(size >= 0, "size", size, "zero or more")
        code = self.code()
        settings, tally = np.zeros(8), np.zeros(4, np.int64)
        for place, value in code.settings.items():
            settings[place] = value
        tally[KIND] = code.kind
        return UpdateArrays(
            weights=np.zeros(size),
            second=np.full(size, code.second),
            drift=np.zeros(size),
            settings=settings,
            tally=tally,
            largest=np.zeros(1),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values and the rule's name, for the provenance record of a saved model."""
        return {"rule": type(self).__name__, **asdict(self)}


def averaged(u: UpdateArrays) -> NDArray[np.float64]:
    r"""Mean of the weight vectors at the end of each step so far; the weights themselves before the first.

    A change :math:`\delta_t` made in step :math:`t` of :math:`T` is part of the vectors at the ends of steps
    :math:`t` to :math:`T`. The mean is therefore the last vector less :math:`\sum_t (t - 1) \delta_t / T`,
    and that sum is ``drift``.
    """
    steps = int(u.tally[STEPS])
    return u.weights - u.drift / steps if steps else u.weights.copy()
