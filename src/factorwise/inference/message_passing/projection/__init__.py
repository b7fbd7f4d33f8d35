"""Bethe projections: inference with energies of the marginals.

A projection minimises, over the marginals of a tractable base model, minus the expected score, minus the
entropy, plus an energy. Choose a base model (`ChainBase`, `GraphBase`), build an energy from measurements of
its marginals, and call `project`.
"""

from __future__ import annotations

from factorwise.inference.message_passing.projection.accelerated import AcceleratedRDA
from factorwise.inference.message_passing.projection.bases import Answer, BaseModel, GraphBase
from factorwise.inference.message_passing.projection.chain_base import ChainBase
from factorwise.inference.message_passing.projection.chains_base import ChainsBase
from factorwise.inference.message_passing.projection.chains_projection import (
    ChainProjections,
    project_chains,
)
from factorwise.inference.message_passing.projection.choosing import Solver, choose_solver, project
from factorwise.inference.message_passing.projection.coupling import CouplingEnergy
from factorwise.inference.message_passing.projection.dual import DualLBFGS
from factorwise.inference.message_passing.projection.energies import (
    Energy,
    MeasuredEnergy,
    SumEnergy,
    nonnegative,
)
from factorwise.inference.message_passing.projection.feature_weights import (
    FeatureWeights,
    RandomFourierMeanMap,
)
from factorwise.inference.message_passing.projection.layout import Layout
from factorwise.inference.message_passing.projection.losses import (
    Losses,
    absolute,
    hinge,
    huber,
    multinomial,
    poisson,
    smoothed_hinge,
    squared,
)
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.inference.message_passing.projection.mirror_descent import MirrorDescent, inverse_time
from factorwise.inference.message_passing.projection.nearest import NearestEnergy, NearestParts
from factorwise.inference.message_passing.projection.observations import (
    gaussian_counts,
    multinomial_counts,
    poisson_counts,
)
from factorwise.inference.message_passing.projection.problem import Point, Problem
from factorwise.inference.message_passing.projection.rda import RDA
from factorwise.inference.message_passing.projection.results import Progress, Projection, Stopping
from factorwise.inference.message_passing.projection.sequences import (
    SequenceEnergy,
    SequenceProjections,
    project_sequences,
)
from factorwise.inference.message_passing.projection.tied import TiedMeasurement
from factorwise.inference.message_passing.projection.user_energy import UserEnergy

__all__ = [
    "RDA",
    "AcceleratedRDA",
    "Answer",
    "BaseModel",
    "ChainBase",
    "ChainProjections",
    "ChainsBase",
    "CouplingEnergy",
    "DualLBFGS",
    "Energy",
    "FeatureWeights",
    "GraphBase",
    "Layout",
    "Losses",
    "MeasuredEnergy",
    "Measurement",
    "MirrorDescent",
    "NearestEnergy",
    "NearestParts",
    "Point",
    "Problem",
    "Progress",
    "Projection",
    "RandomFourierMeanMap",
    "SequenceEnergy",
    "SequenceProjections",
    "Solver",
    "Stopping",
    "SumEnergy",
    "TiedMeasurement",
    "UserEnergy",
    "absolute",
    "choose_solver",
    "gaussian_counts",
    "hinge",
    "huber",
    "inverse_time",
    "multinomial",
    "multinomial_counts",
    "nonnegative",
    "poisson",
    "poisson_counts",
    "project",
    "project_chains",
    "project_sequences",
    "smoothed_hinge",
    "squared",
]
