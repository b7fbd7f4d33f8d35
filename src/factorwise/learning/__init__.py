"""Learning the weights and tables of models from data.

`LogLikelihood` and `PseudoLikelihood` of a templated model on any graph, with a `Prior`, for `minimize`;
Markov networks by proportional fitting, in closed form, by iterative scaling or by maximum likelihood;
directed models with tables. What chain CRFs are trained with is in the modules whose names begin with
``chain``; `factorwise.ChainCRF` puts it together. Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "counts": ["CliqueCounts"],
    "iterative_scaling": ["LogLinearFit", "LogLinearNetwork", "fit_maximum_likelihood", "fit_scaling"],
    "likelihood": ["LogLikelihood"],
    "optimizers": ["OptimizerConfig", "Optimum", "minimize"],
    "priors": ["Prior"],
    "proportional_fitting": ["NetworkFit", "fit_decomposable", "fit_proportional"],
    "pseudo_likelihood": ["PseudoLikelihood"],
    "tables": ["TableNetwork", "fit_tables"],
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CliqueCounts",
    "LogLikelihood",
    "LogLinearFit",
    "LogLinearNetwork",
    "NetworkFit",
    "OptimizerConfig",
    "Optimum",
    "Prior",
    "PseudoLikelihood",
    "TableNetwork",
    "fit_decomposable",
    "fit_maximum_likelihood",
    "fit_proportional",
    "fit_scaling",
    "fit_tables",
    "minimize",
]

if TYPE_CHECKING:
    from factorwise.learning.counts import CliqueCounts
    from factorwise.learning.iterative_scaling import (
        LogLinearFit,
        LogLinearNetwork,
        fit_maximum_likelihood,
        fit_scaling,
    )
    from factorwise.learning.likelihood import LogLikelihood
    from factorwise.learning.optimizers import OptimizerConfig, Optimum, minimize
    from factorwise.learning.priors import Prior
    from factorwise.learning.proportional_fitting import NetworkFit, fit_decomposable, fit_proportional
    from factorwise.learning.pseudo_likelihood import PseudoLikelihood
    from factorwise.learning.tables import TableNetwork, fit_tables


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'factorwise.learning' has no attribute {name!r}")
    value = getattr(import_module(f"factorwise.learning.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
