"""Twins of `factorwise.kernels.clusterings.link_groups`: the same by definition, one link at a time."""

import numpy as np


def count_positive(first, second, score, component, positive, weakest):
    """Count positive links, and find the weakest of them, by component."""
    for one, two, value in zip(first, second, score, strict=True):
        if value > 0 and component[one] == component[two]:
            positive[component[one]] += 1
            weakest[component[one]] = min(weakest[component[one]], value)


def count_inside(first, second, score, component, group, links, settled):
    """Count links by group, and add up those of settled components."""
    for one, two, value in zip(first, second, score, strict=True):
        if component[one] == component[two]:
            if group[component[one]] < 0:
                settled[0] += value
            else:
                links[group[component[one]]] += 1


def scatter_links(first, second, score, component, group, place, end, firsts, seconds, scores):
    """Write links group by group."""
    for one, two, value in zip(first, second, score, strict=True):
        of = component[one]
        if of == component[two] and group[of] >= 0:
            at = end[group[of]]
            firsts[at], seconds[at], scores[at] = place[one], place[two], value
            end[group[of]] += 1


def rows_of_links(first, second, score, low, start, neighbor, scores, fill):
    """Count, or write, the links of each item of a range."""
    for one, two, value in zip(first, second, score, strict=True):
        for item, other in ((one, two), (two, one)):
            k = item - low
            if not 0 <= k < len(start) - 1:
                continue
            if fill:
                neighbor[start[k]], scores[start[k]] = other, value
                start[k] += 1
            else:
                start[k + 1] += 1


def stay_chances(
    start,
    neighbor,
    score,
    low,
    label,
    count,
    records,
    source,
    held,
    weights,
    temperature,
    total,
    listed,
    chances,
):
    """Weigh every cluster that an item could be in."""
    unlinked, cluster = weights
    for k in range(len(start) - 1):
        item = low + k
        home = label[item]
        gains = {}
        for at in range(start[k], start[k + 1]):
            there = label[neighbor[at]]
            gains[there] = gains.get(there, 0.0) + score[at] - unlinked
        others = records[home] - count[item]
        gains[home] = gains.get(home, 0.0) + unlinked * count[item] * others if others else cluster
        for there in gains:
            if there != home:
                gains[there] += unlinked * count[item] * records[there]
                if held[there] & source[item]:
                    gains[there] = -np.inf
        if others:
            gains[-1] = cluster
        odds = {there: np.exp((gain - max(gains.values())) / temperature) for there, gain in gains.items()}
        chances[k] = odds[home] / sum(odds.values())
