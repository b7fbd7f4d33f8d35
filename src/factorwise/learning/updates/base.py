"""The interface of update rules, rules that are your own functions, and the mean of the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.programs import Program, check_arguments
from factorwise.kernels.walks.loops import CLOCK, STEPS
from factorwise.types import Float64s, Int64s
from factorwise.validation import check_count


class UpdateArrays(NamedTuple):
    """The weights that are being learned, and what the rule keeps of them.

    See `factorwise.kernels.walks.rules`.

    weights, second, drift, free : float64[weights]
        The weights; the rule's own number for each; the numbers from which their mean is computed; 1 for
        weights that may be learned.
    clock : int64[3]
        Number of steps, of updates, and of moves whose better world did not score higher, over all walks that
        learn the weights.
    largest : float64[1]
        Largest sum of squares of a gradient that led to an update.
    settings
        One record of the rule's settings.
    """

    weights: Float64s
    second: Float64s
    drift: Float64s
    free: Float64s
    clock: Int64s
    largest: Float64s
    settings: NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRule(ABC):
    """How a violated ranking corrects the weights. Rules are immutable: what is learned is in the arrays.

    function
        The rule itself: ``update(mine, move, gradient)``, which returns 1.0 if it changed the weights.
    """

    function: ClassVar[Any]

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, float]:
        """The constants that the function reads from ``mine.settings[0]``."""

    @property
    def first(self) -> float:
        """The initial value of ``mine.second`` for every weight."""
        return 0.0

    def arrays(self, size: int) -> UpdateArrays:
        """Return arrays for ``size`` weights of zero; to start from others, write them into ``weights``."""
        check_count("size", size, 0)
        settings = np.zeros(1, [(name, np.float64) for name in self.settings or ("none",)])
        for name, value in self.settings.items():
            settings[name] = value
        return UpdateArrays(
            weights=np.zeros(size),
            second=np.full(size, self.first),
            drift=np.zeros(size),
            free=np.ones(size),
            clock=np.zeros(CLOCK, np.int64),
            largest=np.zeros(1),
            settings=settings,
        )

    def program(self, arrays: UpdateArrays) -> Program:
        """Return the rule as a part of a walk that changes these arrays."""
        return Program(update=self.function, arrays=arrays._asdict(), name=f"update rule {self!r}")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values and the rule's name, for the provenance record of a saved model."""
        return {"rule": type(self).__name__, **asdict(self)}


@dataclass(frozen=True, slots=True)
class OwnRule(UpdateRule):
    """A rule that is your own function, in the terms of `factorwise.kernels.walks.rules`.

    update
        ``update(mine, move, gradient)``, a plain function, which returns 1.0 if it changed the weights.
    constants
        The constants that it reads from ``mine.settings[0]``, by name.
    second
        The initial value of ``mine.second`` for every weight.

    >>> from factorwise.kernels.walks.rules import add_gradient, free_squares, lead_of
    >>> def half_way(mine, move, gradient):
    ...     missing = mine.settings[0].margin - lead_of(move)
    ...     if missing <= 0.0:
    ...         return 0.0
    ...     squares = free_squares(mine, move, gradient)
    ...     if squares == 0.0:
    ...         return 0.0
    ...     return add_gradient(mine, move, gradient, 0.5 * missing / squares, squares)
    >>> rule = OwnRule(half_way, constants={"margin": 1.0})
    """

    update: Callable[..., float]
    constants: Mapping[str, float] = field(default_factory=dict)
    second: float = 0.0

    def __post_init__(self) -> None:
        check_arguments("update", self.update)

    @property
    def function(self) -> Callable[..., float]:
        """The function that was given."""
        return self.update

    @property
    def settings(self) -> Mapping[str, float]:
        """The constants that were given."""
        return self.constants

    @property
    def first(self) -> float:
        """The number that was given."""
        return self.second

    def as_dict(self) -> dict[str, Any]:
        """Return plain values and the function's name."""
        return {"rule": self.update.__name__, **self.constants}


def averaged(u: UpdateArrays) -> Float64s:
    r"""Return the mean of the weights after each step so far; before the first step, the weights.

    A change :math:`\delta_t` made in step :math:`t` of :math:`T` is part of the weights after steps :math:`t`
    to :math:`T`. The mean is therefore the last vector minus :math:`\sum_t (t - 1) \delta_t / T`, and that
    sum is ``drift``.
    """
    steps = int(u.clock[STEPS])
    return u.weights - u.drift / steps if steps else u.weights.copy()
