"""The temperature at which scores of links are probabilities.

SampleRank fixes which of two clusterings is better, not by how much. One number makes up for it: the
temperature at which chains give linked pairs the probabilities that, judged by the truth, lose least. Judged
are entities that the weights were not learned from, but among all the others: kept by themselves they would
meet few of the records that they can be confused with, and look surer than they are. The chains are those of
`link_posterior`, as they will be drawn later: longer or shorter ones have another temperature.

The loss is the squared one, which is bounded. Pairs of one entity that no temperature brings together, such
as those of a large entity in two parts, would let a logarithmic loss heat all others until they fall apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.posterior import link_posterior
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.calibration import Reliability, reliability
from factorwise.types import Bools, Ints

TEMPERATURES = tuple(float(t) for t in 0.1 * 2.0 ** (np.arange(17) / 2.0))
HOPELESS = 1.25  # times the least loss: with as much more, no warmer temperature is tried


class Calibration(NamedTuple):
    """The temperature chosen, and for each one tried the mean loss of a linked pair.

    reliability
        How often pairs are of one entity, by the probability that they have at the temperature chosen; None
        where no pair can be judged. It flatters a little: one number was fitted to the same pairs.
    """

    temperature: float
    losses: dict[float, float]
    reliability: Reliability | None = None


class JudgedPairs(NamedTuple):
    """Linked pairs that are judged: the probability of each, the truth, and how often it counts."""

    together: NDArray[np.float32]
    same: Bools
    weight: NDArray[np.float64]

    def loss(self) -> float:
        """Return the squared distances between probabilities and the truth, added up by weight."""
        return float(np.sum((self.together.astype(np.float64) - self.same) ** 2 * self.weight))


class Case(NamedTuple):
    """A clustering that was found, and what is true of it.

    truth
        Entities of the items of ``walk``, -1 where not known.
    judged
        The items that are judged: a pair counts once for each of its two that is. None for all.
    """

    walk: LinkWalk
    truth: Ints
    judged: Bools | None = None

    def weights(self) -> NDArray[np.float64]:
        """Return how often each linked pair counts."""
        first, second = self.walk.graph.first, self.walk.graph.second
        chosen = np.ones(self.walk.n_items, np.bool_) if self.judged is None else self.judged
        count = chosen[first].astype(np.float64) + chosen[second]
        count[(self.truth[first] < 0) | (self.truth[second] < 0)] = 0.0
        return count

    def judge(self, temperature: float, weight: NDArray[np.float64], *, seed: int, team: Team) -> JudgedPairs:
        """Draw the probabilities of its linked pairs at a temperature."""
        graph, pairs = self.walk.graph, np.flatnonzero(weight)
        drawn = link_posterior(self.walk, temperature=temperature, near=self.judged, seed=seed, team=team)
        same = self.truth[graph.first[pairs]] == self.truth[graph.second[pairs]]
        return JudgedPairs(drawn.together[pairs], same, weight[pairs])


def calibrate(cases: Sequence[Case], *, seed: int, team: Team) -> Calibration:
    """Choose one temperature for several clusterings.

    Where no pair can be judged, nothing tells one temperature from another: it is 1.
    """
    weights = [case.weights() for case in cases]
    total = float(sum(weight.sum() for weight in weights))
    if not total:
        return Calibration(1.0, {})
    losses: dict[float, float] = {}
    best: list[JudgedPairs] = []  # at the temperature that loses least so far

    def loss(place: int) -> float:
        temperature = TEMPERATURES[place]
        if temperature not in losses:
            each = zip(cases, weights, strict=True)
            judged = [case.judge(temperature, weight, seed=seed, team=team) for case, weight in each]
            lost = sum(pairs.loss() for pairs in judged) / total
            if lost < min(losses.values(), default=np.inf):
                best[:] = judged
            losses[temperature] = lost
        return losses[temperature]

    for place in range(0, len(TEMPERATURES), 2):  # not by halves: the noise of chains makes several minima
        if loss(place) > HOPELESS * min(losses.values()):
            break
    least = TEMPERATURES.index(min(losses, key=lambda t: losses[t]))
    around = (place for place in (least, least - 1, least + 1) if 0 <= place < len(TEMPERATURES))
    temperature = TEMPERATURES[min(around, key=loss)]
    together, same, weight = (np.concatenate(parts) for parts in zip(*best, strict=True))
    return Calibration(temperature, losses, reliability(together, same, weight=weight))
