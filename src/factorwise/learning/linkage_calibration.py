"""The temperature at which scores of links are probabilities.

SampleRank fixes which of two clusterings is better, not by how much. One number makes up for it: the
temperature at which chains on entities that were held out give linked pairs the probabilities that, judged by
the truth, lose least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.linkage import LinkWalk
from factorwise.inference.mcmc.linkage_posterior import link_posterior
from factorwise.kernels.threads import Team
from factorwise.types import Ints

TEMPERATURES = tuple(float(t) for t in np.geomspace(0.05, 6.0, 9))
DRAWS, CHAINS, BURN_IN = 25, 2, 15


class Calibration(NamedTuple):
    """The temperature chosen, and for each one tried the mean loss of a linked pair."""

    temperature: float
    losses: dict[float, float]


def calibrate(walk: LinkWalk, truth: Ints, *, seed: int, team: Team) -> Calibration:
    """Choose the temperature for ``walk``, a clustering found for items whose entities are ``truth``.

    Where nothing is linked, nothing tells one temperature from another: it is 1.
    """
    graph = walk.graph
    if not len(graph.first):
        return Calibration(1.0, {})
    same = np.asarray(truth)[graph.first] == np.asarray(truth)[graph.second]
    losses = {}
    for temperature in TEMPERATURES:
        drawn = link_posterior(
            walk,
            temperature=temperature,
            chains=CHAINS,
            draws=DRAWS,
            burn_in=BURN_IN,
            thin=1,
            seed=seed,
            team=team,
        )
        losses[temperature] = log_loss(drawn.together, same, CHAINS * DRAWS)
    best = min(losses, key=lambda t: losses[t])
    return Calibration(best, losses)


def log_loss(together: NDArray[np.float32], same: NDArray[np.bool_], draws: int) -> float:
    """Return the mean loss of probabilities that are shares of ``draws`` draws, half a draw added to both."""
    chance = (together.astype(np.float64) * draws + 0.5) / (draws + 1.0)
    return float(-np.mean(np.log(np.where(same, chance, 1.0 - chance))))
