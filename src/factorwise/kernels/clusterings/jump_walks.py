"""Walks by adaptive jumps: drawn by odds, judged by the model or the truth, with all odds kept in step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.gradient_walks import (
    ACCEPTANCE,
    ALWAYS,
    GREEDY,
    LEARNING,
    METROPOLIS,
    METROPOLIS_UNBALANCED,
    TRIES,
    WalkArrays,
    copy_proposal,
    count_factors,
    learn_ranking,
    product,
)
from factorwise.kernels.clusterings.jump_draws import Allocation, draw_jump
from factorwise.kernels.clusterings.jump_features import ClusterModel, gradient_of, join_odds, refresh_cluster
from factorwise.kernels.clusterings.jump_odds import ADDITIVE, LOG_RATIO, JumpArrays, forget_cluster
from factorwise.kernels.clusterings.pair_tables import TableArrays
from factorwise.kernels.clusterings.partition_gains import StorageArrays
from factorwise.kernels.clusterings.partition_gradients import EdgeArrays, Statistics, anchor_of, apply_drawn
from factorwise.kernels.clusterings.partition_moves import WorkArrays
from factorwise.kernels.clusterings.partition_sweeps import tempered
from factorwise.kernels.clusterings.partitions import LIVE, PartitionArrays
from factorwise.kernels.clusterings.truth_gains import TruthArrays, keep_truth_gain, truth_gain
from factorwise.kernels.clusterings.updates import UpdateArrays, count_step
from factorwise.kernels.compile.compiler import inner, lean_kernel
from factorwise.kernels.compile.random import random_uniform


class JumpSamples(NamedTuple):
    """Jumps that were drawn and judged.

    jumps : int64[count, 5]
        Of each: its kind (-1 where nothing could change), source, target, and where its items begin and end.
    items : int32[.]
        The items of all, one jump after the other.
    gains, better : float64[count], float64[count]
        Change of the model's score, and of the metric against the truth.
    """

    jumps: NDArray[np.int64]
    items: NDArray[np.int32]
    gains: NDArray[np.float64]
    better: NDArray[np.float64]


@inner
def weigh(o: ClusterModel, weights: NDArray[np.float64], work: WorkArrays, walk: WalkArrays) -> float:
    """Take the gradient of the jump at hand and return its gain."""
    gradient_of(o, work.items, work.drawn, walk.gradient)
    return product(weights, walk.gradient)


@lean_kernel
def draw_jumps(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    gradient: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    seen: TableArrays,
    allocation: Allocation,
    truth: TruthArrays,
    weights: NDArray[np.float64],
    jumps: JumpArrays,
    work: WorkArrays,
    walk: WalkArrays,
    samples: JumpSamples,
    no_features: NDArray[np.float32],
    state: NDArray[np.uint64],
) -> None:
    """Draw jumps from the present world and judge them; the world stays as it is."""
    o = ClusterModel(pair_statistics, cluster_statistics, gradient, p, h, e, tables, seen)
    end = 0
    for sample in range(len(samples.jumps)):
        drawn = draw_jump(
            allocation,
            o,
            jumps,
            work.items,
            work.drawn,
            no_features,
            state,
        )
        samples.jumps[sample, 0] = jumps.jump[0]
        samples.jumps[sample, 3] = end
        if drawn:
            samples.gains[sample] = weigh(o, weights, work, walk)
            count_factors(o.p, work)
            if len(truth.entity) > 0:
                samples.better[sample] = truth_gain(
                    truth, o.p, work.items, work.drawn[0], work.drawn[1], work.drawn[2]
                )
            samples.jumps[sample, 1], samples.jumps[sample, 2] = work.drawn[1], work.drawn[2]
            for index in range(work.drawn[0]):
                samples.items[end + index] = work.items[index]
            end += work.drawn[0]
        samples.jumps[sample, 4] = end


@inner
def propose_jump(
    allocation: Allocation,
    o: ClusterModel,
    weights: NDArray[np.float64],
    jumps: JumpArrays,
    work: WorkArrays,
    walk: WalkArrays,
    no_features: NDArray[np.float32],
    state: NDArray[np.uint64],
) -> bool:
    """Draw a jump into ``work`` and set its gradient; of several, the one with the highest gain.

    With no tries at all, the jump that ``work`` holds is taken.
    """
    tries = walk.settings[TRIES]
    if tries == 0:
        weigh(o, weights, work, walk)
        return True
    best, kind, found = -np.inf, -1, False
    for _ in range(tries):
        if not draw_jump(
            allocation,
            o,
            jumps,
            work.items,
            work.drawn,
            no_features,
            state,
        ):
            work.tally[2] += 1
            continue
        gain = weigh(o, weights, work, walk)
        count_factors(o.p, work)
        if not found or gain > best:
            best, kind, found = gain, jumps.jump[0], True
            if tries > 1:
                copy_proposal(work.items, work.drawn, walk.items, walk.drawn)
    if found and tries > 1:
        copy_proposal(walk.items, walk.drawn, work.items, work.drawn)
        jumps.jump[0] = kind
        weigh(o, weights, work, walk)
    return found


@inner
def apply_jump(
    o: ClusterModel,
    jumps: JumpArrays,
    work: WorkArrays,
    gradient: NDArray[np.float64],
) -> None:
    """Apply the jump whose gradient was just taken, and bring the odds of what has changed up to date."""
    p = o.p
    m, source, target = work.drawn[0], work.drawn[1], work.drawn[2]
    staying = anchor_of(p, work.items, m, source)
    apply_drawn(p, o.h, o.tables, work.items, work.drawn)
    joined = int(p.items[work.items[0]].label)
    left = -1 if staying < 0 else int(p.items[staying].label)
    if left < 0 and jumps.settings[ADDITIVE] > 0.0:
        gone = target if joined == source else source
        join_odds(jumps, p, joined, gone, gradient)
        return
    for cluster in (source, target):
        if cluster >= 0 and p.clusters[cluster].live_at >= p.counters[LIVE]:
            forget_cluster(jumps, p, cluster)
    refresh_cluster(o, jumps, joined)
    if left >= 0:
        refresh_cluster(o, jumps, left)


@lean_kernel
def jump_walk(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    gradient: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    seen: TableArrays,
    allocation: Allocation,
    log_ratio: Callable[..., None],
    application: Callable[..., None],
    truth: TruthArrays,
    u: UpdateArrays,
    jumps: JumpArrays,
    work: WorkArrays,
    walk: WalkArrays,
    no_features: NDArray[np.float32],
    state: NDArray[np.uint64],
    temperature: float,
    steps: int,
) -> None:
    """Walk ``steps`` jumps, learning the model's weights if it shall; the proposer's stay as they are.

    Beside the model's functions it is handed pointers to its own larger parts, which would otherwise be
    compiled into each function on the way: `allocate`, `jump_log_ratio` and `apply_jump`, or their stand-ins.

    Implements: rohanimanesh2009inference, Alg. 1 with the proposer of Eq. 10, 11.
    """
    o = ClusterModel(pair_statistics, cluster_statistics, gradient, p, h, e, tables, seen)
    acceptance, learning = walk.settings[ACCEPTANCE], walk.settings[LEARNING] != 0
    for _ in range(steps):
        changes = propose_jump(
            allocation,
            o,
            u.weights,
            jumps,
            work,
            walk,
            no_features,
            state,
        )
        chance = random_uniform(state)
        gain, better = 0.0, 0.0
        if changes:
            gain = product(u.weights, walk.gradient)
            if len(truth.entity) > 0:
                better = truth_gain(truth, o.p, work.items, work.drawn[0], work.drawn[1], work.drawn[2])
            if learning and better != 0.0:
                gain = learn_ranking(u, walk, gain, better)
        if learning:
            count_step(u)
        if not changes:
            continue
        log_accept = 0.0
        if acceptance == METROPOLIS:
            log_ratio(
                allocation,
                o,
                jumps,
                work.items,
                work.drawn,
                walk.gradient,
                no_features,
                state,
            )
            log_accept = tempered(gain, temperature) + jumps.logs[LOG_RATIO]
        elif acceptance == METROPOLIS_UNBALANCED:
            log_accept = tempered(gain, temperature)
        elif acceptance == GREEDY:
            log_accept = 0.0 if gain > 0.0 else -np.inf
        elif acceptance != ALWAYS:
            log_accept = 0.0 if better > 0.0 or (better == 0.0 and gain > 0.0) else -np.inf
        if chance < np.exp(log_accept):
            work.tally[0] += 1
            work.score[0] += gain
            for k in range(len(walk.path)):
                walk.path[k] += walk.gradient[k]
            if len(truth.entity) > 0:
                keep_truth_gain(truth)
            if acceptance == METROPOLIS and len(o.tables.blocks) > 0:
                # looking at other transfers for the ratio has overwritten the counts after this one
                gradient_of(o, work.items, work.drawn, walk.gradient)
            application(o, jumps, work, walk.gradient)
