"""Batch optimizers for weights: one kind of objective, one kind of result, several methods.

>>> import numpy as np
>>> from factorwise.learning.likelihood.priors import Prior
>>> target = np.array([3.0, 0.2])
>>> optimum = minimize(lambda w: (((w - target) ** 2).sum(), 2 * (w - target)), [0, 0], prior=Prior(l1=1.0))
>>> optimum.converged, optimum.weights.round(6).tolist()
(True, [2.5, 0.0])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, require
from factorwise.learning.optimizers.base import (
    HessianProduct,
    Iteration,
    Objective,
    ObjectiveError,
    OptimizerConfig,
    Optimum,
    Penalty,
    Problem,
    Progress,
    Watch,
    checked_start,
)
from factorwise.learning.optimizers.classical import (
    conjugate_gradient,
    coordinate_descent,
    gradient_descent,
    newton_cg,
    powell,
)
from factorwise.learning.optimizers.lbfgs import lbfgs
from factorwise.learning.optimizers.orthant_wise import owlqn

__all__ = [
    "METHODS",
    "Iteration",
    "ObjectiveError",
    "OptimizerConfig",
    "Optimum",
    "Progress",
    "minimize",
]

METHODS: dict[str, Callable[[Problem, OptimizerConfig, Watch | None], Optimum]] = {
    "lbfgs": lbfgs,
    "owlqn": owlqn,
    "gradient_descent": gradient_descent,
    "conjugate_gradient": conjugate_gradient,
    "newton_cg": newton_cg,
    "coordinate_descent": coordinate_descent,
    "powell": powell,
}
"""What `minimize` can be told to use, by name."""


def minimize(
    objective: Objective,
    start: ArrayLike,
    *,
    prior: Penalty,
    method: str = "lbfgs",
    watch: Watch | None = None,
    hessian_product: HessianProduct | None = None,
    config: OptimizerConfig | None = None,
    **settings: Any,
) -> Optimum:
    """Minimize ``objective(w) + prior.l1 * sum(abs(w)) + prior.l2 * sum(w ** 2)``.

    objective
        A function of the weights (float64[n], which it must not keep or change) that returns the value and
        the gradient (float64[n], which its next call may overwrite). If one of them is not finite, the
        optimizer steps back; at the start that is an error.
    start : float64[n]
        Initial weights; those of an earlier fit give a warm start.
    prior
        Penalties of absolute and squared weights, such as a `factorwise.learning.likelihood.priors.Prior`.
    method
        A key of `METHODS`. With an l1 penalty "lbfgs" means "owlqn", its form for such penalties.
    watch
        Called after each iteration; returning True stops.
    hessian_product
        For "newton_cg": a function of the weights and a direction that returns the objective's Hessian times
        the direction.
    config, settings
        When to stop and how much to remember: an `OptimizerConfig`, its fields by name, or both; fields given
        by name take precedence.
    """
    known = [item.name for item in fields(OptimizerConfig)]
    for name in settings:
        require(name in known, "a setting", name, "one of " + ", ".join(known))
    require(method in METHODS, "method", method, "one of " + ", ".join(METHODS))
    if method == "lbfgs" and prior.l1 > 0.0:
        method = "owlqn"
    if hessian_product is not None and method != "newton_cg":
        raise InvalidArgumentError(
            f"hessian_product was given, but method {method!r} does not use it: leave it out, or use"
            " method='newton_cg'."
        )
    problem = Problem(objective, checked_start(start), prior, hessian_product)
    return METHODS[method](problem, replace(config or OptimizerConfig(), **settings), watch)
