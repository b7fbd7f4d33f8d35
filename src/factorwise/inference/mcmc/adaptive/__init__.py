"""Adaptive proposals: a split-merge proposer whose weights the cross-entropy method tunes.

`AdaptiveSplitMerge` proposes by `JumpWeights` over `JumpFeatures`; with frozen weights it serves
`mcmc.Metropolis`. `decode` climbs to a good clustering and tunes it on the way as `Tuning` says;
`train_proposer` learns from several documents what to use on others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "decoding": ["Decoded", "decode"],
    "family": ["JumpFamily"],
    "features": ["JumpFeatures"],
    "jumps": ["Jump", "Jumps"],
    "law": ["JumpWeights"],
    "proposer": ["AdaptiveSplitMerge"],
    "training": ["TunedDocument", "train_proposer"],
    "tuning": ["Tuning", "tune"],
}

_WHERE = {name: home for home, names in _HOMES.items() for name in names}

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

if TYPE_CHECKING:
    from factorwise.inference.mcmc.adaptive.decoding import Decoded, decode
    from factorwise.inference.mcmc.adaptive.family import JumpFamily
    from factorwise.inference.mcmc.adaptive.features import JumpFeatures
    from factorwise.inference.mcmc.adaptive.jumps import Jump, Jumps
    from factorwise.inference.mcmc.adaptive.law import JumpWeights
    from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
    from factorwise.inference.mcmc.adaptive.training import TunedDocument, train_proposer
    from factorwise.inference.mcmc.adaptive.tuning import Tuning, tune


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'factorwise.adaptive' has no attribute {name!r}")
    # on first use, because the engines that know this package are among what it imports
    value = getattr(import_module(f"factorwise.inference.mcmc.adaptive.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
