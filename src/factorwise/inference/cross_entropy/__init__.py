"""The cross-entropy method: search by a distribution that learns from its best samples.

`cross_entropy` runs the whole loop over any `Family` of distributions. Families with a closed form:
`Bernoulli`, `Categorical`, `Gaussian`; any other is fitted by `maximize`. The pieces of one iteration are
available for custom loops: `elite_of` chooses the samples to learn from, `update` fits the parameters to them
and smooths.
"""

from __future__ import annotations

from factorwise.inference.cross_entropy.base import ClosedFormFamily, Family
from factorwise.inference.cross_entropy.families import Bernoulli, Categorical, Gaussian
from factorwise.inference.cross_entropy.fitting import Around, fit, maximize
from factorwise.inference.cross_entropy.method import (
    CrossEntropyResult,
    Elite,
    Trace,
    Update,
    cross_entropy,
    each,
    elite_of,
    update,
)

__all__ = [
    "Around",
    "Bernoulli",
    "Categorical",
    "ClosedFormFamily",
    "CrossEntropyResult",
    "Elite",
    "Family",
    "Gaussian",
    "Trace",
    "Update",
    "cross_entropy",
    "each",
    "elite_of",
    "fit",
    "maximize",
    "update",
]
