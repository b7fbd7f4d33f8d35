"""Walks that look at the atomic gradient of every step: SampleRank and contrastive divergence.

A walk proposes, takes the gradient of the touched factors, learns from it if it shall, decides, applies.
The weights enter only through their product with the gradient, so they may change between any two steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.pair_tables import TableArrays
from factorwise.kernels.clusterings.partition_gains import StorageArrays
from factorwise.kernels.clusterings.partition_gradients import (
    EdgeArrays,
    Statistics,
    anchor_of,
    apply_drawn,
    transfer_gradient,
)
from factorwise.kernels.clusterings.partition_moves import MoveArrays, WorkArrays, draw_kind, draw_transfer
from factorwise.kernels.clusterings.partition_ratios import relocation_ratio, transfer_log_ratio
from factorwise.kernels.clusterings.partition_sweeps import tempered
from factorwise.kernels.clusterings.partitions import NEW, PartitionArrays
from factorwise.kernels.clusterings.truth_gains import TruthArrays, keep_truth_gain, truth_gain
from factorwise.kernels.clusterings.updates import STEPS, UPDATES, UpdateArrays, count_step, learn
from factorwise.kernels.compile.compiler import hot, inlined, inner, lean_kernel
from factorwise.kernels.compile.random import random_uniform

METROPOLIS, METROPOLIS_UNBALANCED, GREEDY, ALWAYS, FOLLOW_TRUTH = range(5)
ACCEPTANCE, TRIES, LEARNING, RELOCATIONS = range(4)


class WalkArrays(NamedTuple):
    """How a walk decides, and its scratch.

    settings : int64[4]
        How it accepts, how many proposals it draws to take the best of, whether it learns, whether all its
        moves relocate one item, which makes their probabilities cheaper.
    free : float64[weights]
        1 for weights that may be learned, 0 for those that are held fixed.
    gradient, lesson, path : float64[weights]
        Gradient of the step at hand; what of it may be learned; sum of the gradients of accepted steps since
        it was last cleared.
    items, drawn : int32[n], int64[4]
        The best proposal of several.
    undo_items, undo_drawn : int32[.], int64[., 4]
        Transfers to take back: how many items, a member that stayed behind or -1, the source's type, and
        where the items end in ``undo_items``.
    """

    settings: NDArray[np.int64]
    free: NDArray[np.float64]
    gradient: NDArray[np.float64]
    lesson: NDArray[np.float64]
    path: NDArray[np.float64]
    items: NDArray[np.int32]
    drawn: NDArray[np.int64]
    undo_items: NDArray[np.int32]
    undo_drawn: NDArray[np.int64]


@inlined
def product(weights: NDArray[np.float64], gradient: NDArray[np.float64]) -> float:
    """Inner product."""
    total = 0.0
    for k in range(len(weights)):
        total += weights[k] * gradient[k]
    return total


@inner
def propose(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    weights: NDArray[np.float64],
    moves: MoveArrays,
    work: WorkArrays,
    walk: WalkArrays,
    state: NDArray[np.uint64],
) -> bool:
    """Draw a transfer into ``work`` and set its gradient; of several, the one with the highest gain."""
    tries = walk.settings[TRIES]
    best = -np.inf
    for _ in range(tries):
        kind = draw_kind(moves, p, state)
        if kind < 0 or not draw_transfer(kind, moves, p, 0, 0, state, work.items, work.drawn):
            work.tally[2] += 1
            continue
        transfer_gradient(
            pair_statistics, cluster_statistics, p, h, e, tables, work.items, work.drawn, walk.gradient
        )
        count_factors(p, work)
        gain = product(weights, walk.gradient)
        if gain > best or best == -np.inf:
            best = gain
            if tries > 1:
                copy_proposal(work.items, work.drawn, walk.items, walk.drawn)
    if best == -np.inf:
        return False
    if tries > 1:
        copy_proposal(walk.items, walk.drawn, work.items, work.drawn)
        transfer_gradient(
            pair_statistics, cluster_statistics, p, h, e, tables, work.items, work.drawn, walk.gradient
        )
    return True


@inner
def copy_proposal(
    items: NDArray[np.int32], drawn: NDArray[np.int64], to_items: NDArray[np.int32], to: NDArray[np.int64]
) -> None:
    """Keep a proposal for later."""
    for k in range(4):
        to[k] = drawn[k]
    for k in range(drawn[0]):
        to_items[k] = items[k]


@hot
def count_factors(p: PartitionArrays, work: WorkArrays) -> None:
    """Count the pairs of items that the drawn transfer joins or separates."""
    m, source, target = work.drawn[0], work.drawn[1], work.drawn[2]
    size = np.int64(0) if target == NEW else np.int64(p.clusters[target].size)
    work.tally[1] += m * (size + p.clusters[source].size - m)


@inner
def is_accepted(
    acceptance: int,
    relocations: bool,
    moves: MoveArrays,
    p: PartitionArrays,
    work: WorkArrays,
    gain: float,
    better: float,
    temperature: float,
    chance: float,
) -> bool:
    """Whether the walk goes to the proposed world, whose gain and truth gain (``better``) are given."""
    if acceptance == METROPOLIS:
        if relocations:
            ratio = relocation_ratio(moves, p, work.items, work.drawn, True)
            return chance < ratio * np.exp(tempered(gain, temperature))
        log_ratio = transfer_log_ratio(moves, p, work.items, work.drawn)
        return chance < np.exp(tempered(gain, temperature) + log_ratio)
    if acceptance == METROPOLIS_UNBALANCED:
        return chance < np.exp(tempered(gain, temperature))
    if acceptance == GREEDY:
        return gain > 0.0
    if acceptance == ALWAYS:
        return True
    return better > 0.0 or (better == 0.0 and gain > 0.0)


@lean_kernel
def samplerank_walk(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    truth: TruthArrays,
    u: UpdateArrays,
    moves: MoveArrays,
    work: WorkArrays,
    walk: WalkArrays,
    state: NDArray[np.uint64],
    temperature: float,
    steps: int,
) -> None:
    """Walk ``steps`` steps; where the model ranks two neighbours wrongly, learn from their gradient.

    Implements: wick2009samplerank, Alg. 1; rohanimanesh2009inference, Alg. 1.
    """
    acceptance, learning = walk.settings[ACCEPTANCE], walk.settings[LEARNING] != 0
    relocations = walk.settings[RELOCATIONS] != 0
    for _ in range(steps):
        changes = propose(
            pair_statistics, cluster_statistics, p, h, e, tables, u.weights, moves, work, walk, state
        )
        chance = random_uniform(state)
        gain, better = 0.0, 0.0
        if changes:
            gain = product(u.weights, walk.gradient)
            if len(truth.entity) > 0 and work.drawn[0] > 0:
                better = truth_gain(truth, p, work.items, work.drawn[0], work.drawn[1], work.drawn[2])
            if learning and better != 0.0:
                gain = learn_ranking(u, walk, gain, better)
        if learning:
            count_step(u)
        if not changes:
            continue
        if is_accepted(acceptance, relocations, moves, p, work, gain, better, temperature, chance):
            work.tally[0] += 1
            work.score[0] += gain
            for k in range(len(walk.path)):
                walk.path[k] += walk.gradient[k]
            if len(truth.entity) > 0 and work.drawn[0] > 0:
                keep_truth_gain(truth)
            apply_drawn(p, h, tables, work.items, work.drawn)


@inner
def learn_ranking(u: UpdateArrays, walk: WalkArrays, gain: float, better: float) -> float:
    """Let the update rule see which of two neighbours is better; return the gain under the new weights."""
    direction = 1.0 if better > 0.0 else -1.0
    for k in range(len(walk.lesson)):
        walk.lesson[k] = walk.free[k] * walk.gradient[k]
    if learn(u, walk.lesson, direction, direction * gain, abs(better)):
        return product(u.weights, walk.gradient)
    return gain


@hot
def shift_weights(u: UpdateArrays, lesson: NDArray[np.float64], rate: float) -> None:
    """Add a multiple of ``lesson`` to the weights, whatever they are, and keep their mean in step."""
    norm = 0.0
    for k in range(len(lesson)):
        change = rate * lesson[k]
        u.weights[k] += change
        u.drift[k] += u.tally[STEPS] * change
        norm += lesson[k] * lesson[k]
    if norm > 0.0:
        u.tally[UPDATES] += 1
        u.largest[0] = max(u.largest[0], norm)


@lean_kernel
def contrastive_walk(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    u: UpdateArrays,
    moves: MoveArrays,
    work: WorkArrays,
    walk: WalkArrays,
    state: NDArray[np.uint64],
    temperature: float,
    rate: float,
    length: int,
    rounds: int,
    persistent: bool,
) -> None:
    """Walk ``rounds`` times ``length`` steps, learning after each from where the walk has come to.

    ``walk.path`` is the statistics of the present world minus those of the truth. A walk that does not
    persist starts at the truth and is taken back there, step by step.

    Implements: wick2009samplerank, Sec. 4 (contrastive divergence and its persistent form, compared there).
    """
    acceptance, relocations = walk.settings[ACCEPTANCE], walk.settings[RELOCATIONS] != 0
    for _ in range(rounds):
        taken, end = 0, 0
        for _ in range(length):
            changes = propose(
                pair_statistics, cluster_statistics, p, h, e, tables, u.weights, moves, work, walk, state
            )
            chance = random_uniform(state)
            count_step(u)
            if not changes:
                continue
            gain = product(u.weights, walk.gradient)
            if not is_accepted(acceptance, relocations, moves, p, work, gain, 0.0, temperature, chance):
                continue
            work.tally[0] += 1
            for k in range(len(walk.path)):
                walk.path[k] += walk.gradient[k]
            if not persistent:
                end = remember(p, work, walk, taken, end)
                taken += 1
            apply_drawn(p, h, tables, work.items, work.drawn)
        for k in range(len(walk.lesson)):
            walk.lesson[k] = walk.free[k] * walk.path[k]
        shift_weights(u, walk.lesson, -rate)
        if not persistent:
            for index in range(taken - 1, -1, -1):
                recall(p, work, walk, index)
                transfer_gradient(
                    pair_statistics,
                    cluster_statistics,
                    p,
                    h,
                    e,
                    tables,
                    work.items,
                    work.drawn,
                    walk.gradient,
                )
                apply_drawn(p, h, tables, work.items, work.drawn)
            for k in range(len(walk.path)):
                walk.path[k] = 0.0


@inner
def remember(p: PartitionArrays, work: WorkArrays, walk: WalkArrays, index: int, end: int) -> int:
    """Note how to take the drawn transfer back; return where its items end."""
    m, source = work.drawn[0], work.drawn[1]
    for k in range(m):
        walk.undo_items[end + k] = work.items[k]
    walk.undo_drawn[index, 0] = m
    walk.undo_drawn[index, 1] = anchor_of(p, work.items, m, source)
    walk.undo_drawn[index, 2] = p.clusters[source].type
    walk.undo_drawn[index, 3] = end + m
    return end + m


@inner
def recall(p: PartitionArrays, work: WorkArrays, walk: WalkArrays, index: int) -> None:
    """Draw the transfer that takes the noted one back; all later ones have been taken back."""
    m, anchor, end = walk.undo_drawn[index, 0], walk.undo_drawn[index, 1], walk.undo_drawn[index, 3]
    for k in range(m):
        work.items[k] = walk.undo_items[end - m + k]
    work.drawn[0], work.drawn[3] = m, walk.undo_drawn[index, 2]
    work.drawn[2] = NEW if anchor < 0 else np.int64(p.items[anchor].label)
    work.drawn[1] = work.drawn[2] if m == 0 else np.int64(p.items[work.items[0]].label)
