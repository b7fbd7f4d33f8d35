"""Where one step of a kernel may lead, and what an evaluator may find, enumerated from their definitions."""

from __future__ import annotations

import math
from functools import singledispatch
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from factorwise.inference.mcmc import (
    BlockGibbs,
    ConfidenceSample,
    DelayedAcceptance,
    Exact,
    Gibbs,
    Metropolis,
    PartitionGibbs,
    PoissonMinibatch,
    Proposal,
    UniformSample,
    log_acceptance,
)
from factorwise.inference.mcmc.assignment_gibbs import _alternatives, _estimated, _listed
from factorwise.inference.mcmc.evaluators.delayed import _correction
from factorwise.inference.mcmc.evaluators.sampled import multipliers_of
from factorwise.inference.mcmc.proposals.assignment_proposals import joint_scores
from factorwise.model.contributions import as_contributions
from factorwise.world.diff import NEW, Retype, Transfer

MAX_OUTCOMES = 4_000_000
TAIL = 1e-18  # probability of a setting of the counts that enumeration leaves out


class Outcomes(NamedTuple):
    """Everything an evaluator may find: float64[outcomes] each.

    ``examined`` is the mean number of factors examined; for a test in two stages, by the first of them.
    ``correction`` is 0 for tests in one stage.
    """

    probability: np.ndarray
    gain: np.ndarray
    examined: np.ndarray
    correction: np.ndarray


def transition_matrix(kernel, worlds, temperature=1.0):
    """Probability of each step between ``worlds``."""
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    matrix = np.zeros((len(worlds), len(worlds)))
    for row, world in enumerate(worlds):
        for diff, probability in transitions(kernel, world, temperature):
            matrix[row, position[world.after(diff).canonical()]] += probability
        matrix[row, row] += 1.0 - matrix[row].sum()
    return matrix


@singledispatch
def transitions(kernel, world, temperature=1.0):
    """Enumerate ``(diff, probability)`` of one step; what is missing from one is the chance to stay."""
    yield from transitions(kernel.kernel, world, temperature)


@transitions.register
def _(kernel: Metropolis, world, temperature=1.0):
    for proposal in kernel.proposer.support(world):
        if proposal.diff is None:
            continue
        weighed = proposal if kernel.hastings else Proposal(proposal.diff, 0.0, 0.0)
        if isinstance(kernel.evaluator, Exact):
            accept = math.exp(log_acceptance(kernel.model.gain(world, proposal.diff), weighed, temperature))
        else:
            bounds = kernel.evaluator.needs_bounds
            listed = kernel.model.contributions(world, proposal.diff, bounds=bounds)
            accept = mean_acceptance(outcomes(kernel.evaluator, listed, temperature), weighed, temperature)
        yield proposal.diff, math.exp(proposal.log_forward) * accept


@transitions.register
def _(kernel: PartitionGibbs, world, temperature=1.0):
    for item in range(world.n_items):
        places = places_of(world, item)
        gains = np.array([0.0 if diff is None else kernel.model.gain(world, diff) for diff in places])
        chances = softmax(gains / temperature) / world.n_items
        yield from ((diff, p) for diff, p in zip(places, chances.tolist(), strict=True) if diff is not None)


def places_of(world, item):
    """Every place for an item: the clusters in storage order (None is where it is), then new ones."""
    source = world.cluster_of(item)
    places = [
        None if target == source else Transfer((item,), source, target)
        for target in world.cluster_ids().tolist()
    ]
    kinds = range(world.n_types)
    if world.size_of(source) > 1:
        return [*places, *(Transfer((item,), source, NEW, kind) for kind in kinds)]
    old = world.type_of(source)
    return [*places, *(Retype(source, old, kind) for kind in kinds if kind != old)]


@transitions.register
def _(kernel: Gibbs, world, temperature=1.0):
    yield from gibbs_transitions(kernel, world, temperature, kernel.evaluator)


@transitions.register
def _(kernel: BlockGibbs, world, temperature=1.0):
    yield from gibbs_transitions(kernel, world, temperature, Exact())


def gibbs_transitions(kernel, world, temperature, sampler):
    blocks = kernel.blocks_of(world.variables)
    if kernel.scan == "random":
        for block in blocks:
            for there, chance in block_outcomes(kernel.model, world, block, temperature, sampler):
                if there != world:
                    yield net_change(world, there), chance / len(blocks)
        return
    reached = {world.canonical(): (world, 1.0)}
    for block in blocks:
        following = {}
        for here, probability in reached.values():
            for there, chance in block_outcomes(kernel.model, here, block, temperature, sampler):
                _, sofar = following.get(there.canonical(), (there, 0.0))
                following[there.canonical()] = (there, sofar + probability * chance)
        reached = following
    for there, probability in reached.values():
        if there != world:
            yield net_change(world, there), probability


def block_outcomes(model, world, block, temperature, sampler):
    """Where resampling one block may lead."""
    joint = joint_scores(model, world, block)
    listed = None if isinstance(sampler, Exact) else _listed(model, world, block[0])
    found = [(1.0, joint.scores)]
    if listed is not None:
        found = [
            (chance, _estimated(listed, multiplier, joint.current))
            for chance, multiplier in samples(sampler, *_alternatives(listed))
        ]
    chances = np.zeros(len(joint.settings))
    for chance, scores in found:
        chances += chance * softmax(scores / temperature)
    for setting, chance in zip(joint.settings, chances.tolist(), strict=True):
        if chance > 0.0:
            yield world.after(world.relabel(block, setting)), chance


def softmax(scores):
    with np.errstate(invalid="ignore"):
        odds = np.exp(scores - scores.max()) if scores.max() < np.inf else (scores == np.inf).astype(float)
    return odds / odds.sum()


def net_change(before, after):
    changed = np.flatnonzero(before.values != after.values).tolist()
    return before.relabel(changed, after.values[changed].tolist())


def mean_acceptance(found, proposal, temperature=1.0):
    """Acceptance probability averaged over everything an evaluator may find; as `log_acceptance` of each."""
    ratio = proposal.log_backward - proposal.log_forward
    if proposal.log_backward == -math.inf:
        return float(found.probability @ (found.gain == math.inf))
    first = np.minimum(0.0, found.gain / temperature + ratio)
    second = np.minimum(0.0, found.correction / temperature)
    return float(found.probability @ np.exp(first + second))


@singledispatch
def outcomes(evaluator, contributions, temperature=1.0):
    """Enumerate what `evaluate` may return, for few factors: here, by the samples it may draw."""
    listed = as_contributions(contributions)
    found = list(samples(evaluator, listed.gain[None], listed.stratum, listed.certain))
    return Outcomes(
        np.array([chance for chance, _ in found]),
        np.array([listed.total(multiplier) for _, multiplier in found]),
        np.array([np.count_nonzero(multiplier) for _, multiplier in found], dtype=np.float64),
        np.zeros(len(found)),
    )


@outcomes.register
def _(evaluator: DelayedAcceptance, contributions, temperature=1.0):
    listed = as_contributions(contributions)
    found, total = outcomes(evaluator.first, listed, temperature), listed.total()
    return found._replace(correction=np.array([_correction(total, gain) for gain in found.gain.tolist()]))


@outcomes.register
def _(evaluator: PoissonMinibatch, contributions, temperature=1.0):
    """The counts, up to a tail of negligible probability."""
    listed = as_contributions(contributions)
    law = evaluator._law(listed, temperature)
    if law is None:
        return Outcomes(np.ones(1), np.array([listed.total()]), np.array([float(len(listed))]), np.zeros(1))
    log_chance, ratio, seen = np.zeros(1), np.zeros(1), np.zeros(1)
    for rate, forward, backward in zip(law.rate, law.forward, law.backward, strict=True):
        counts = np.arange(largest_count(forward) + 1)
        assert len(log_chance) * len(counts) <= MAX_OUTCOMES
        log_weights = counts * math.log(forward) - forward - np.cumsum(np.log(np.maximum(counts, 1)))
        # a factor with a count of zero was examined if all its draws were dropped
        glance = np.where(counts > 0, 1.0, -math.expm1(forward - rate))
        log_chance = np.add.outer(log_chance, log_weights).ravel()
        likely = log_chance > math.log(TAIL)
        log_chance = log_chance[likely]
        ratio = np.add.outer(ratio, counts * math.log(backward / forward)).ravel()[likely]
        seen = np.add.outer(seen, glance).ravel()[likely]
    fixed = listed.total(listed.certain.astype(np.float64))
    certain = float(listed.certain.sum())
    return Outcomes(np.exp(log_chance), fixed + ratio * temperature, seen + certain, np.zeros(len(seen)))


def largest_count(rate):
    """A count that a Poisson number of this mean exceeds with negligible probability."""
    count, weight = 0, math.exp(-rate)
    while count < rate or weight > TAIL:
        count += 1
        weight *= rate / count
    return count


@singledispatch
def samples(sampler, changes, stratum, certain):
    """Enumerate what `multipliers` may return, each with its probability, for few factors."""
    raise NotImplementedError(type(sampler))


@samples.register
def _(sampler: Exact, changes, stratum, certain):
    yield 1.0, np.ones(changes.shape[1])


@samples.register
def _(sampler: UniformSample, changes, stratum, certain):
    pool = np.flatnonzero(~certain)
    size = sampler.count(len(pool))
    for chosen in combinations(range(len(pool)), size):
        yield 1.0 / math.comb(len(pool), size), multipliers_of(sampler.estimate, certain, [pool], (chosen,))


@samples.register
def _(sampler: ConfidenceSample, changes, stratum, certain):
    pools = sampler.pools(stratum, certain)
    for chance, drawn in stops(sampler, changes, pools):
        yield chance, multipliers_of(sampler.estimate, certain, pools, drawn)


def stops(sampler, changes, pools):
    """Where drawing may stop and how probable that is: by sets, because order does not matter."""
    populations = [len(pool) for pool in pools]
    if sum(populations) < 2:
        yield 1.0, tuple(tuple(range(population)) for population in populations)
        return
    reached = {((),) * len(pools): 1.0}
    for look in sampler.looks(sum(populations)):
        wanted = sampler.allotment(look, populations)
        following = {}
        for sofar, chance in reached.items():
            ways = [
                list(combinations(sorted(set(range(population)) - set(have)), size - len(have)))
                for population, have, size in zip(populations, sofar, wanted, strict=True)
            ]
            share = chance / math.prod(len(way) for way in ways)
            for more in product(*ways):
                now = tuple(tuple(sorted(a + b)) for a, b in zip(sofar, more, strict=True))
                following[now] = following.get(now, 0.0) + share
        reached = {}
        for drawn, chance in following.items():
            seen = np.concatenate([pool[list(d)] for pool, d in zip(pools, drawn, strict=True)])
            if sampler.width(changes[:, seen], populations, wanted) < sampler.interval or look == sum(
                populations
            ):
                yield chance, drawn
            else:
                reached[drawn] = chance
