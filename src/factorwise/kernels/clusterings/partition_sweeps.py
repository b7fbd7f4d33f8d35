"""Metropolis-Hastings and Gibbs over clusterings, many steps a call.

The model's functions come in as function pointers, so these sweeps are compiled once for all models.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partition_gains import (
    ClusterScore,
    PairGain,
    StorageArrays,
    apply_relocation,
    apply_transfer,
    relocation_gain,
    score_slots,
    transfer_gain,
)
from factorwise.kernels.clusterings.partition_moves import (
    RESTRICTED_GIBBS,
    TYPES,
    MoveArrays,
    SideArrays,
    WorkArrays,
    draw_kind,
    draw_relocation,
    draw_transfer,
)
from factorwise.kernels.clusterings.partition_ratios import relocation_ratio, transfer_log_ratio
from factorwise.kernels.clusterings.partitions import LIVE, NEW, PartitionArrays
from factorwise.kernels.clusterings.restricted_gibbs import draw_restricted
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.compile.random import random_below, random_uniform


@hot
def tempered(score: float, temperature: float) -> float:
    """Divide by the temperature: the one place where it enters."""
    return score / temperature


@lean_kernel
def metropolis_sweep(
    pair_gain: PairGain,
    cluster_score: ClusterScore,
    p: PartitionArrays,
    h: StorageArrays,
    moves: MoveArrays,
    work: WorkArrays,
    state: NDArray[np.uint64],
    temperature: float,
    general: SideArrays | None,
    linked: bool | None,
    steps: int,
    first: int,
    last: int,
) -> None:
    """Propose, weigh, decide, apply: ``steps`` times over all items, or block by block.

    Where ``first < last`` these blocks are visited in turn, with as many steps in each as it has items.
    ``general`` is scratch; where it is None only relocations are compiled, all that most mixtures need, in a
    third of the time. Where ``linked`` is None what weighs candidates is left out as well.
    """
    drawn = work.drawn
    for block in range(first, max(last, first + 1)):
        lo, hi, count = 0, 0, steps
        if first < last:
            lo, hi = moves.block_start[block], moves.block_start[block + 1]
            count = hi - lo
            work.tally[3] += fetch_block(p, h, moves, lo, hi)
        for _ in range(count):
            kind = draw_kind(moves, p, state)
            ratio, log_ratio = 1.0, 0.0  # backward over forward probability: one or the other
            if kind < 0:
                changes = False
            elif general is None:
                changes = draw_relocation(kind, moves, p, lo, hi, state, work.items, drawn)
                if changes:
                    ratio = relocation_ratio(moves, p, work.items, drawn, linked)
            elif kind == RESTRICTED_GIBBS:
                changes = True
                log_ratio = draw_restricted(pair_gain, cluster_score, p, h, moves, work, general, state)
            else:
                changes = draw_transfer(kind, moves, p, lo, hi, state, work.items, drawn)
                if changes:
                    log_ratio = transfer_log_ratio(moves, p, work.items, drawn)
            chance = random_uniform(state)
            if not changes:
                work.tally[2] += 1
                continue
            m, source, target, new_type = drawn[0], drawn[1], drawn[2], drawn[3]
            if general is None:
                gain = relocation_gain(h, p, pair_gain, cluster_score, work.items[0], target, new_type)
            elif m == 0:
                gain = retype_gain(cluster_score, p, h, source, new_type)
            else:
                gain = transfer_gain(h, p, pair_gain, cluster_score, work.items, m, source, target, new_type)
            size = np.int64(0) if target == NEW else np.int64(p.clusters[target].size)
            work.tally[1] += m * (size + p.clusters[source].size - m)
            if chance < ratio * np.exp(tempered(gain, temperature) + log_ratio):
                work.tally[0] += 1
                work.score[0] += gain
                if general is None:
                    apply_relocation(h, p, work.items[0], target, new_type)
                elif m == 0:
                    p.clusters[source].type = new_type
                    p.clusters[source].value = h.values[0]
                else:
                    apply_transfer(h, p, work.items, m, source, target, new_type)


@inner
def fetch_block(p: PartitionArrays, h: StorageArrays, moves: MoveArrays, lo: int, hi: int) -> int:
    """Read what the steps in a block will look at, item by item; return a sum, so that it is really read.

    None of the reads waits for another item's, so many are under way at a time; the steps, which would wait
    for each in turn, then find it in the cache.
    """
    total = np.int64(0)
    columns = h.item_ints.shape[1]
    for position in range(lo, hi):
        item = moves.blocks[position].item
        total += p.clusters[p.items[item].label].size
        if columns > 0:
            total += h.item_ints[item, 0]
    return total


@inner
def retype_gain(
    cluster_score: ClusterScore, p: PartitionArrays, h: StorageArrays, cluster: int, new: int
) -> float:
    """Change of score when a cluster changes its type; sets ``h.values``."""
    if cluster_score is None:
        return 0.0
    lo = p.clusters[cluster].start
    h.values[0] = score_slots(h, cluster_score, lo, lo + p.clusters[cluster].size, new)
    return h.values[0] - p.clusters[cluster].value


@lean_kernel
def gibbs_sweep(
    pair_gain: PairGain,
    cluster_score: ClusterScore,
    p: PartitionArrays,
    h: StorageArrays,
    moves: MoveArrays,
    work: WorkArrays,
    state: NDArray[np.uint64],
    temperature: float,
    log_weights: NDArray[np.float64],
    steps: int,
) -> None:
    """Make ``steps`` steps that place one random item anew among all clusters and new ones.

    ``log_weights`` has room for the gains of all choices.
    """
    types = moves.settings[TYPES]
    for _ in range(steps):
        item = random_below(state, len(p.items))
        source = p.items[item].label
        alone = p.clusters[source].size == 1
        clusters = p.counters[LIVE]
        for position in range(clusters):
            target = p.clusters[position].live
            gain = 0.0
            if target != source:
                gain = relocation_gain(h, p, pair_gain, cluster_score, item, target, 0)
                work.tally[1] += p.clusters[source].size - 1 + p.clusters[target].size
            log_weights[position] = gain
        choices = clusters
        for kind in range(types):  # a cluster of its own, of each type; the one it has counts above
            if alone and kind == p.clusters[source].type:
                continue
            if alone:
                gain = retype_gain(cluster_score, p, h, source, kind)
            else:
                gain = relocation_gain(h, p, pair_gain, cluster_score, item, NEW, kind)
                work.tally[1] += p.clusters[source].size - 1
            log_weights[choices] = gain
            choices += 1
        chosen = draw_log(log_weights, choices, temperature, random_uniform(state))
        if chosen < clusters and p.clusters[chosen].live == source:
            continue
        work.tally[0] += 1
        work.score[0] += log_weights[chosen]
        target, kind = np.int64(NEW), np.int64(0)
        if chosen < clusters:
            target = np.int64(p.clusters[chosen].live)
        else:
            kind = chosen - clusters
            if alone and kind >= p.clusters[source].type:
                kind += 1
        if alone and target == NEW:
            retype_gain(cluster_score, p, h, source, kind)
            p.clusters[source].type = kind
            p.clusters[source].value = h.values[0]
            continue
        if cluster_score is not None:  # leaves the scores of the clusters as they will be
            relocation_gain(h, p, pair_gain, cluster_score, item, target, kind)
        apply_relocation(h, p, item, target, kind)


@inner
def draw_log(log_weights: NDArray[np.float64], count: int, temperature: float, chance: float) -> int:
    """Draw an index with probability proportional to exp(log_weights / temperature)."""
    top = -np.inf
    for index in range(count):
        top = max(top, log_weights[index])
    total = 0.0
    for index in range(count):
        total += np.exp(tempered(log_weights[index] - top, temperature))
    threshold = chance * total
    for index in range(count):
        threshold -= np.exp(tempered(log_weights[index] - top, temperature))
        if threshold < 0.0:
            return index
    return count - 1
