"""Learning the weights and tables of models from data.

`LogLikelihood` and `PseudoLikelihood` of a templated model on any graph, with a `Prior`, are objectives for
`minimize`. Markov networks are fitted by proportional fitting or in closed form, directed models by counting.
`SampleRank` learns from the steps of a walk over worlds of any kind, with an update rule and a preference;
`ContrastiveDivergence` and `StructuredPerceptron` learn from the same `TrainingWorld`s. `learn_energies`
learns the energies of Bethe projections from a `SequenceLikelihood`. The training of chain CRFs is in
`learning.chains`; `factorwise.ChainCRF` combines it. Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from factorwise.lazy import load_lazily

_HOMES = {
    "samplerank.joint_preferences": ["JointPreference"],
    "samplerank.contrastive": ["ContrastiveDivergence"],
    "networks.counts": ["CliqueCounts"],
    "likelihood.marginal_likelihood": ["LogLikelihood"],
    "optimizers": ["OptimizerConfig", "Optimum", "minimize"],
    "samplerank.perceptron": ["StructuredPerceptron"],
    "samplerank.preferences": [
        "AccuracyPreference",
        "DiffPreference",
        "Preference",
        "ProgramPreference",
        "TargetPreference",
        "TruthPreference",
        "WorldPreference",
    ],
    "likelihood.priors": ["Prior"],
    "networks.proportional_fitting": ["NetworkFit", "fit_decomposable", "fit_proportional"],
    "projections.learning": ["EnergyFit", "EnergyLearning", "learn_energies"],
    "projections.features": ["LabeledChains", "learn_feature_weights"],
    "projections.likelihood": ["SequenceLikelihood", "energy_gradient"],
    "projections.scores": ["GivenScores", "LinearScores"],
    "likelihood.pseudo_likelihood": ["PseudoLikelihood"],
    "samplerank.ranking_bounds": ["largest_margin", "noisy_bound", "sample_size", "separable_bound"],
    "samplerank.span_preferences": ["SpanPreference"],
    "samplerank.learner": ["Learned", "PassRecord", "SampleRank"],
    "networks.tables": ["TableNetwork", "fit_tables"],
    "updates": ["AdaGrad", "Arow", "ConfidenceWeighted", "Mira", "OwnRule", "PassiveAggressive", "Unit"],
    "samplerank.walkers": ["TrainingWorld"],
}

__all__ = [
    "AccuracyPreference",
    "AdaGrad",
    "Arow",
    "CliqueCounts",
    "ConfidenceWeighted",
    "ContrastiveDivergence",
    "DiffPreference",
    "EnergyFit",
    "EnergyLearning",
    "GivenScores",
    "JointPreference",
    "LabeledChains",
    "Learned",
    "LinearScores",
    "LogLikelihood",
    "Mira",
    "NetworkFit",
    "OptimizerConfig",
    "Optimum",
    "OwnRule",
    "PassRecord",
    "PassiveAggressive",
    "Preference",
    "Prior",
    "ProgramPreference",
    "PseudoLikelihood",
    "SampleRank",
    "SequenceLikelihood",
    "SpanPreference",
    "StructuredPerceptron",
    "TableNetwork",
    "TargetPreference",
    "TrainingWorld",
    "TruthPreference",
    "Unit",
    "WorldPreference",
    "energy_gradient",
    "fit_decomposable",
    "fit_proportional",
    "fit_tables",
    "largest_margin",
    "learn_energies",
    "learn_feature_weights",
    "minimize",
    "noisy_bound",
    "sample_size",
    "separable_bound",
]

if TYPE_CHECKING:
    from factorwise.learning.likelihood.marginal_likelihood import LogLikelihood
    from factorwise.learning.likelihood.priors import Prior
    from factorwise.learning.likelihood.pseudo_likelihood import PseudoLikelihood
    from factorwise.learning.networks.counts import CliqueCounts
    from factorwise.learning.networks.proportional_fitting import (
        NetworkFit,
        fit_decomposable,
        fit_proportional,
    )
    from factorwise.learning.networks.tables import TableNetwork, fit_tables
    from factorwise.learning.optimizers import OptimizerConfig, Optimum, minimize
    from factorwise.learning.projections.features import LabeledChains, learn_feature_weights
    from factorwise.learning.projections.learning import EnergyFit, EnergyLearning, learn_energies
    from factorwise.learning.projections.likelihood import SequenceLikelihood, energy_gradient
    from factorwise.learning.projections.scores import GivenScores, LinearScores
    from factorwise.learning.samplerank.contrastive import ContrastiveDivergence
    from factorwise.learning.samplerank.joint_preferences import JointPreference
    from factorwise.learning.samplerank.learner import Learned, PassRecord, SampleRank
    from factorwise.learning.samplerank.perceptron import StructuredPerceptron
    from factorwise.learning.samplerank.preferences import (
        AccuracyPreference,
        DiffPreference,
        Preference,
        ProgramPreference,
        TargetPreference,
        TruthPreference,
        WorldPreference,
    )
    from factorwise.learning.samplerank.ranking_bounds import (
        largest_margin,
        noisy_bound,
        sample_size,
        separable_bound,
    )
    from factorwise.learning.samplerank.span_preferences import SpanPreference
    from factorwise.learning.samplerank.walkers import TrainingWorld
    from factorwise.learning.updates import (
        AdaGrad,
        Arow,
        ConfidenceWeighted,
        Mira,
        OwnRule,
        PassiveAggressive,
        Unit,
    )

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
