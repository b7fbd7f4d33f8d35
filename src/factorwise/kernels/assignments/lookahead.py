"""Read-ahead: prefetch what the next Gibbs steps at random variables will read.

A walk over a model that is much larger than the cache waits for memory at every step. Because its random
numbers can be drawn twice, the variables of the next steps are known in advance, and their data is fetched
before it is needed. The walk itself is unchanged.

``mine`` has ``templates`` int64[k, 2], the ``fetch`` functions of the model's templates, and scratch space:
``scout`` uint64[2], ``left`` int64[1], ``fetched`` float64[1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from factorwise.kernels.compile.compiler import two_forms
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.compile.random import random_below, random_uniform

_FLAT: Any = {"forceinline": True, "_nrt": False}
STEPS = 16  # number of steps to read ahead


@two_forms
def look_ahead(world: Any, mine: Any, random: Any, move: Any) -> None:
    """Prefetch what the next steps will read, when it is due; the interpreted form does nothing."""


@overload(look_ahead, jit_options=_FLAT)
def _look_ahead_compiled(world: Any, mine: Any, random: Any, move: Any) -> Callable[..., None]:
    def compiled(world: Any, mine: Any, random: Any, move: Any) -> None:
        if mine.left[0] == 0:
            mine.scout[0], mine.scout[1] = random[0], random[1]
            for _ in range(STEPS):
                move.item = world.movable[random_below(mine.scout, len(world.movable))]
                random_uniform(mine.scout)  # the number that will choose the variable's label
                for k in range(mine.templates.shape[0]):
                    if mine.templates[k, 0] != 0:
                        mine.fetched[0] += call(mine.templates[k, 0], mine.templates[k, 1])
            mine.left[0] = STEPS
        mine.left[0] -= 1

    return compiled
