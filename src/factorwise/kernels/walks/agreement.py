"""Templates over a clustering and labels of the same items: agreement within clusters, and with their types.

``world`` has ``clusters`` and ``labels``; ``mine`` has ``count`` int32[cluster ids, labels], the number of
members of a cluster with each label, which is updated after every change; ``weights`` float64[weights];
``offset`` int64[1].
"""

from __future__ import annotations

from typing import Any

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.walks.library import put

AGREE, DIFFER = range(2)


def begin_counts(world: Any, mine: Any) -> None:
    """Count the labels in every cluster."""
    for cluster in range(mine.count.shape[0]):
        for label in range(mine.count.shape[1]):
            mine.count[cluster, label] = 0
    for item in range(len(world.labels.value)):
        mine.count[world.clusters.label[item], world.labels.value[item]] += 1


def count_move(world: Any, mine: Any, move: Any) -> None:
    """Update the counts after an item moved to another cluster."""
    label = world.labels.value[move.item]
    mine.count[move.source, label] -= 1
    mine.count[move.target, label] += 1


def count_label(world: Any, mine: Any, move: Any) -> None:
    """Update the counts after an item got another label."""
    cluster = world.clusters.label[move.item]
    mine.count[cluster, move.source] -= 1
    mine.count[cluster, move.target] += 1


@shared
def agreeing_moved(world: Any, mine: Any, move: Any) -> Any:
    """Return how many more pairs agree if an item moves to another cluster."""
    label = world.labels.value[move.item]
    return mine.count[move.target, label] - (mine.count[move.source, label] - 1)


@shared
def agreeing_relabeled(world: Any, mine: Any, move: Any) -> Any:
    """Return how many more pairs agree if an item gets another label."""
    cluster = world.clusters.label[move.item]
    return mine.count[cluster, move.target] - (mine.count[cluster, move.source] - 1)


@shared
def pairs_moved(world: Any, move: Any) -> Any:
    """Return how many more pairs are in one cluster if an item moves to another cluster."""
    return world.clusters.size[move.target] - (world.clusters.size[move.source] - 1)


def gain_of_agreement_moved(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of an item's move."""
    agree = agreeing_moved(world, mine, move)
    at = mine.offset[0]
    return mine.weights[at + AGREE] * agree + mine.weights[at + DIFFER] * (pairs_moved(world, move) - agree)


def gradient_of_agreement_moved(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after an item's move minus those before it."""
    agree = agreeing_moved(world, mine, move)
    put(gradient, move, mine.offset[0] + AGREE, agree)
    put(gradient, move, mine.offset[0] + DIFFER, pairs_moved(world, move) - agree)


def gain_of_agreement_relabeled(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of an item's relabeling."""
    at = mine.offset[0]
    return (mine.weights[at + AGREE] - mine.weights[at + DIFFER]) * agreeing_relabeled(world, mine, move)


def gradient_of_agreement_relabeled(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after an item's relabeling minus those before it."""
    agree = agreeing_relabeled(world, mine, move)
    put(gradient, move, mine.offset[0] + AGREE, agree)
    put(gradient, move, mine.offset[0] + DIFFER, -agree)


# a weight for each type of a cluster and label of a member


@shared
def weight_of(mine: Any, kind: Any, label: Any) -> Any:
    """Return the weight of a label in a cluster of a type."""
    return mine.offset[0] + kind * mine.count.shape[1] + label


def gain_of_type_moved(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of an item's move."""
    label, kind = world.labels.value[move.item], world.clusters.type
    after = mine.weights[weight_of(mine, kind[move.target], label)]
    return after - mine.weights[weight_of(mine, kind[move.source], label)]


def gradient_of_type_moved(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after an item's move minus those before it."""
    label, kind = world.labels.value[move.item], world.clusters.type
    put(gradient, move, weight_of(mine, kind[move.target], label), 1.0)
    put(gradient, move, weight_of(mine, kind[move.source], label), -1.0)


def gain_of_type_relabeled(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of an item's relabeling."""
    kind = world.clusters.type[world.clusters.label[move.item]]
    after = mine.weights[weight_of(mine, kind, move.target)]
    return after - mine.weights[weight_of(mine, kind, move.source)]


def gradient_of_type_relabeled(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after an item's relabeling minus those before it."""
    kind = world.clusters.type[world.clusters.label[move.item]]
    put(gradient, move, weight_of(mine, kind, move.target), 1.0)
    put(gradient, move, weight_of(mine, kind, move.source), -1.0)


def gain_of_retyped(mine: Any, move: Any) -> float:
    """Return the gain of a cluster's change of type."""
    gain = 0.0
    for label in range(mine.count.shape[1]):
        change = mine.weights[weight_of(mine, move.target, label)]
        change -= mine.weights[weight_of(mine, move.source, label)]
        gain += mine.count[move.item, label] * change
    return gain


def gradient_of_retyped(mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after a cluster's change of type minus those before it."""
    for label in range(mine.count.shape[1]):
        members = mine.count[move.item, label]
        if members > 0:
            put(gradient, move, weight_of(mine, move.target, label), members)
            put(gradient, move, weight_of(mine, move.source, label), -members)


# pairs of items whose score depends on the labels of both: a node is item * labels + label, and ``start``
# int64[nodes + 1] says where its pairs are in ``other``, ``its`` and ``score``: the other item, its label,
# and the score


@shared
def pairs_of_label(world: Any, mine: Any, item: Any, label: Any, cluster: Any) -> Any:
    """Return the score of the pairs of an item with a label and the members of a cluster."""
    node = item * mine.labels[0] + label
    total = 0.0
    for k in range(mine.start[node], mine.start[node + 1]):
        other = mine.other[k]
        if world.clusters.label[other] == cluster and world.labels.value[other] == mine.its[k]:
            total += mine.score[k]
    return total


@shared
def pairs_of_move(world: Any, mine: Any, move: Any) -> Any:
    """Return the change of score by an item's move."""
    label = world.labels.value[move.item]
    after = pairs_of_label(world, mine, move.item, label, move.target)
    return after - pairs_of_label(world, mine, move.item, label, move.source)


@shared
def pairs_of_relabel(world: Any, mine: Any, move: Any) -> Any:
    """Return the change of score by an item's relabeling."""
    cluster = world.clusters.label[move.item]
    after = pairs_of_label(world, mine, move.item, move.target, cluster)
    return after - pairs_of_label(world, mine, move.item, move.source, cluster)


def gain_of_pairs_moved(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of an item's move."""
    at, moved = mine.offset[0], pairs_moved(world, move)
    return mine.weights[at] * pairs_of_move(world, mine, move) + mine.weights[at + 1] * moved


def gradient_of_pairs_moved(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after an item's move minus those before it."""
    put(gradient, move, mine.offset[0], pairs_of_move(world, mine, move))
    put(gradient, move, mine.offset[0] + 1, pairs_moved(world, move))


def gain_of_pairs_relabeled(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of an item's relabeling."""
    return mine.weights[mine.offset[0]] * pairs_of_relabel(world, mine, move)


def gradient_of_pairs_relabeled(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after an item's relabeling minus those before it."""
    put(gradient, move, mine.offset[0], pairs_of_relabel(world, mine, move))
