"""Large factor graphs whose structure changes while inference runs.

The names below are loaded when they are first used: ``import factorwise`` itself loads neither numba nor
scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "variables.bags": ["Bags"],
    "variables.domain": ["Domain"],
    "variables.variable": ["Column", "Variables"],
    "variables.features": ["Features"],
    "variables.fields": ["Fields"],
    "world.assignment": ["Assignment", "Relabel"],
    "world.partition": ["Partition"],
    "world.diff": ["NEW", "Retype", "Transfer"],
    "model.model": ["Model"],
    "model.weights": ["SparseVector"],
    "model.template": ["Template"],
    "model.grounding": ["FactorGraph"],
    "model.unrolling": ["unroll"],
    "kernels.compile.primitives": ["overlap"],
    "variables.pair_table": ["PairTable"],
    "apps.alignment.estimator": ["OntologyAligner"],
    "apps.collective.estimator": ["CollectiveModel"],
    "apps.coreference.estimator": ["CoreferenceResolver"],
    "apps.resolution.estimator": ["EntityResolver"],
    "apps.tagging.estimator": ["ChainCRF"],
    "inference.oracle": ["Answer", "infer"],
    "inference.mcmc.run": ["Annealed", "Samples", "anneal", "sample"],
}

# the names of whole families live one level down: factorwise.templates.PairTemplate, factorwise.mcmc.Merge
_ROOMS = {
    "templates": "model.templates",
    "exact": "inference.exact",
    "message_passing": "inference.message_passing",
    "mcmc": "inference.mcmc",
    "adaptive": "inference.mcmc.adaptive",
    "cross_entropy": "inference.cross_entropy",
    "moves": "world.moves",
    "networks": "io.networks",
    "learning": "learning",
    "tagging": "apps.tagging",
    "collective": "apps.collective",
    "coreference": "apps.coreference",
    "alignment": "apps.alignment",
    "resolution": "apps.resolution",
    "testing": "testing",
}

_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "NEW",
    "Annealed",
    "Answer",
    "Assignment",
    "Bags",
    "ChainCRF",
    "CollectiveModel",
    "Column",
    "CoreferenceResolver",
    "Domain",
    "EntityResolver",
    "FactorGraph",
    "Features",
    "Fields",
    "Model",
    "OntologyAligner",
    "PairTable",
    "Partition",
    "Relabel",
    "Retype",
    "Samples",
    "SparseVector",
    "Template",
    "Transfer",
    "Variables",
    "__version__",
    "adaptive",
    "alignment",
    "anneal",
    "collective",
    "coreference",
    "cross_entropy",
    "exact",
    "infer",
    "learning",
    "mcmc",
    "message_passing",
    "moves",
    "networks",
    "overlap",
    "resolution",
    "sample",
    "tagging",
    "templates",
    "testing",
    "unroll",
]

if TYPE_CHECKING:
    from factorwise import learning, testing
    from factorwise.apps import alignment, collective, coreference, resolution, tagging
    from factorwise.apps.alignment.estimator import OntologyAligner
    from factorwise.apps.collective.estimator import CollectiveModel
    from factorwise.apps.coreference.estimator import CoreferenceResolver
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.apps.tagging.estimator import ChainCRF
    from factorwise.inference import cross_entropy, exact, mcmc, message_passing
    from factorwise.inference.mcmc import adaptive
    from factorwise.inference.mcmc.run import Annealed, Samples, anneal, sample
    from factorwise.inference.oracle import Answer, infer
    from factorwise.io import networks
    from factorwise.kernels.compile.primitives import overlap
    from factorwise.model import templates
    from factorwise.model.grounding import FactorGraph
    from factorwise.model.model import Model
    from factorwise.model.template import Template
    from factorwise.model.unrolling import unroll
    from factorwise.model.weights import SparseVector
    from factorwise.variables.bags import Bags
    from factorwise.variables.domain import Domain
    from factorwise.variables.features import Features
    from factorwise.variables.fields import Fields
    from factorwise.variables.pair_table import PairTable
    from factorwise.variables.variable import Column, Variables
    from factorwise.world import moves
    from factorwise.world.assignment import Assignment, Relabel
    from factorwise.world.diff import NEW, Retype, Transfer
    from factorwise.world.partition import Partition


def __getattr__(name: str) -> object:
    if name in _WHERE:
        value = getattr(import_module(f"factorwise.{_WHERE[name]}"), name)
    elif name in _ROOMS:
        value = import_module(f"factorwise.{_ROOMS[name]}")
    else:
        raise AttributeError(f"module 'factorwise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
