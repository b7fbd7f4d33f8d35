"""Large factor graphs whose structure changes while inference runs.

Each name is loaded when it is first used, so ``import factorwise`` itself loads neither numba nor scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

__version__ = "0.2.0"

_HOMES = {
    "variables.bags": ["Bags"],
    "variables.domain": ["Domain"],
    "variables.variable": ["Column", "Variables"],
    "variables.features": ["Features"],
    "variables.fields": ["Fields"],
    "world.assignment": ["Assignment", "Relabel"],
    "world.partition": ["Partition"],
    "world.hierarchy": ["Hierarchy"],
    "world.joint": ["Joint", "JointDiff"],
    "world.structures": ["Matching", "Permutation", "Tree"],
    "world.targets": ["Change", "Changes", "TargetWorld"],
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
    "apps.resolution.curation.review": ["Review"],
    "apps.resolution.estimator": ["EntityResolver"],
    "apps.resolution.scored_pairs.clusterer": ["PairClusterer"],
    "apps.tagging.estimator": ["ChainCRF"],
    "inference.oracle": ["Answer", "infer"],
    "store.store": ["Store"],
    "inference.mcmc.run": ["Annealed", "Samples", "anneal", "sample"],
}

# families of names live one level down: factorwise.templates.PairTemplate, factorwise.mcmc.Merge
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


__all__ = [
    "NEW",
    "Annealed",
    "Answer",
    "Assignment",
    "Bags",
    "ChainCRF",
    "Change",
    "Changes",
    "CollectiveModel",
    "Column",
    "CoreferenceResolver",
    "Domain",
    "EntityResolver",
    "FactorGraph",
    "Features",
    "Fields",
    "Hierarchy",
    "Joint",
    "JointDiff",
    "Matching",
    "Model",
    "OntologyAligner",
    "PairClusterer",
    "PairTable",
    "Partition",
    "Permutation",
    "Relabel",
    "Retype",
    "Review",
    "Samples",
    "SparseVector",
    "Store",
    "TargetWorld",
    "Template",
    "Transfer",
    "Tree",
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
    from factorwise.apps.resolution.curation.review import Review
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.apps.resolution.scored_pairs.clusterer import PairClusterer
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
    from factorwise.store.store import Store
    from factorwise.variables.bags import Bags
    from factorwise.variables.domain import Domain
    from factorwise.variables.features import Features
    from factorwise.variables.fields import Fields
    from factorwise.variables.pair_table import PairTable
    from factorwise.variables.variable import Column, Variables
    from factorwise.world import moves
    from factorwise.world.assignment import Assignment, Relabel
    from factorwise.world.diff import NEW, Retype, Transfer
    from factorwise.world.hierarchy import Hierarchy
    from factorwise.world.joint import Joint, JointDiff
    from factorwise.world.partition import Partition
    from factorwise.world.structures import Matching, Permutation, Tree
    from factorwise.world.targets import Change, Changes, TargetWorld

__getattr__, __dir__ = load_lazily(__name__, _HOMES, _ROOMS)
