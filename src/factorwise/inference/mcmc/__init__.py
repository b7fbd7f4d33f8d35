"""Markov chain Monte Carlo: proposers, transition kernels, and chains that run them.

A transition kernel (`Metropolis`, `Gibbs`, `BlockGibbs`, `PartitionGibbs`, `WorldGibbs`) decides one step;
`sample` and `anneal` run many, compiled where they can. Proposers for labels: `UniformRelabel`,
`LocalRelabel`, `ResampleSpan`, `Swap`, mixed by `Mixture`. Moves for clusterings: `RelocateToCluster`,
`RelocateToItem`, `RelocateToCandidate`, `RelocateToNew`, `Merge`, `Split`, `SplitMerge`, `RestrictedGibbs`,
`RetypeCluster`, mixed by `PartitionMixture`. Moves for matchings, permutations and trees: `Rematch`,
`Exchange` and `Insert`, `Reattach`; of hierarchies: `Regraft`, `RegraftToCandidate`, `Regroup`. Evaluators,
which compute the gain of a step: `Exact`, `UniformSample`, `ConfidenceSample`, `PoissonMinibatch`,
`DelayedAcceptance`.
"""

from __future__ import annotations

from factorwise.inference.mcmc.assignment_gibbs import BlockGibbs, Gibbs
from factorwise.inference.mcmc.diagnostics import (
    effective_sample_size,
    pair_effective_sample_size,
    r_hat,
    to_arviz,
    to_pandas,
    to_xarray,
)
from factorwise.inference.mcmc.engine import PlainEngine, PlainEngineWarning, make_engine
from factorwise.inference.mcmc.evaluators import (
    ConfidenceSample,
    DelayedAcceptance,
    Estimate,
    Evaluator,
    Exact,
    PoissonMinibatch,
    UniformSample,
)
from factorwise.inference.mcmc.kernel import Proposal, Proposer, Step, TransitionKernel
from factorwise.inference.mcmc.metropolis import Metropolis, log_acceptance
from factorwise.inference.mcmc.proposals.assignment_proposals import (
    LocalRelabel,
    ResampleSpan,
    Swap,
    UniformRelabel,
)
from factorwise.inference.mcmc.proposals.hierarchy_moves import Regraft, RegraftToCandidate, Regroup
from factorwise.inference.mcmc.proposals.joint_moves import Together, Within
from factorwise.inference.mcmc.proposals.mixtures import Mixture, PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToCandidate,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.proposals.restricted_gibbs import RestrictedGibbs
from factorwise.inference.mcmc.proposals.target_moves import Exchange, Insert, Reattach, Rematch
from factorwise.inference.mcmc.run import Annealed, Samples, anneal, sample
from factorwise.inference.mcmc.schedules import Constant, Geometric, Linear, Schedule
from factorwise.inference.mcmc.walk import Walk
from factorwise.inference.mcmc.world_gibbs import PartitionGibbs, WorldGibbs

__all__ = [
    "Annealed",
    "BlockGibbs",
    "Blocks",
    "ConfidenceSample",
    "Constant",
    "DelayedAcceptance",
    "Estimate",
    "Evaluator",
    "Exact",
    "Exchange",
    "Geometric",
    "Gibbs",
    "Insert",
    "Linear",
    "LocalRelabel",
    "Merge",
    "Metropolis",
    "Mixture",
    "PartitionGibbs",
    "PartitionMixture",
    "PlainEngine",
    "PlainEngineWarning",
    "PoissonMinibatch",
    "Proposal",
    "Proposer",
    "Reattach",
    "Regraft",
    "RegraftToCandidate",
    "Regroup",
    "RelocateToCandidate",
    "RelocateToCluster",
    "RelocateToItem",
    "RelocateToNew",
    "Rematch",
    "ResampleSpan",
    "RestrictedGibbs",
    "RetypeCluster",
    "Samples",
    "Schedule",
    "Split",
    "SplitMerge",
    "Step",
    "Swap",
    "Together",
    "TransitionKernel",
    "UniformRelabel",
    "UniformSample",
    "Walk",
    "Within",
    "WorldGibbs",
    "anneal",
    "effective_sample_size",
    "log_acceptance",
    "make_engine",
    "pair_effective_sample_size",
    "r_hat",
    "sample",
    "to_arviz",
    "to_pandas",
    "to_xarray",
]
