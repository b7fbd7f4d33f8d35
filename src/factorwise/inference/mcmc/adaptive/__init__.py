"""Adaptive proposals: a split-merge proposer whose weights the cross-entropy method tunes.

`AdaptiveSplitMerge` proposes by `JumpWeights` over `JumpFeatures`; with fixed weights it is a proposer for
`mcmc.Metropolis`. `decode` climbs to a good clustering and tunes the proposer as `Tuning` says;
`train_proposer` learns weights from several documents for use on others.
"""

from __future__ import annotations

from factorwise.inference.mcmc.adaptive.decoding import Decoded, decode
from factorwise.inference.mcmc.adaptive.family import JumpFamily
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.jumps import Jump, Jumps
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.training import TunedDocument, train_proposer
from factorwise.inference.mcmc.adaptive.tuning import Tuning, tune

__all__ = [
    "AdaptiveSplitMerge",
    "Decoded",
    "Jump",
    "JumpFamily",
    "JumpFeatures",
    "JumpWeights",
    "Jumps",
    "TunedDocument",
    "Tuning",
    "decode",
    "train_proposer",
    "tune",
]
