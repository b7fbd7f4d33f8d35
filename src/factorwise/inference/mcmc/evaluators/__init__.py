"""Evaluators compute the gain of a proposed diff.

`Exact` examines every touched factor. `UniformSample` and `ConfidenceSample` examine some of them and change
the distribution of the chain. `PoissonMinibatch` and `DelayedAcceptance` examine some of them and leave the
distribution unchanged.
"""

from __future__ import annotations

from factorwise.inference.mcmc.evaluators.base import Estimate, Evaluator, FactorSampler
from factorwise.inference.mcmc.evaluators.delayed import DelayedAcceptance
from factorwise.inference.mcmc.evaluators.exact import Exact
from factorwise.inference.mcmc.evaluators.minibatch import PoissonMinibatch
from factorwise.inference.mcmc.evaluators.sampled import ConfidenceSample, UniformSample

__all__ = [
    "ConfidenceSample",
    "DelayedAcceptance",
    "Estimate",
    "Evaluator",
    "Exact",
    "FactorSampler",
    "PoissonMinibatch",
    "UniformSample",
]
