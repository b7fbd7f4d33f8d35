"""Clusterings of linked items in rings: the state that the learner of link weights walks over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import inner

ALONE = -1  # in place of a cluster: a new one


class LinkArrays(NamedTuple):
    """Links between n items, and the current clustering.

    start : int64[n + 1], neighbor : int32[links]
        The links of item i are those from ``start[i]`` to ``start[i + 1]``; each stands at both its ends.
    weight, sources : int32[n], uint64[n]
        How many records an item stands for, and bits of the sources that it comes from.
    label : int32[n]
        The cluster of each item, named by one of its members.
    total : int64[n], held : uint64[n]
        By cluster: weight of its members, and bits of their sources.
    after, before : int32[n]
        Members of a cluster in a ring.
    """

    start: NDArray[np.int64]
    neighbor: NDArray[np.int32]
    weight: NDArray[np.int32]
    sources: NDArray[np.uint64]
    label: NDArray[np.int32]
    total: NDArray[np.int64]
    held: NDArray[np.uint64]
    after: NDArray[np.int32]
    before: NDArray[np.int32]


@inner
def leave(links: LinkArrays, item: int) -> None:
    """Take an item out of its cluster, into one of its own; the cluster finds a new name if it bore its."""
    label = links.label[item]
    if links.after[item] == item:
        return
    after, before = links.after[item], links.before[item]
    links.after[before], links.before[after] = after, before
    links.total[label] -= links.weight[item]
    links.held[label] ^= links.sources[item]
    if label == item:  # rare: one member in |cluster| bears its name, so renaming costs one look on average
        links.total[after], links.held[after] = links.total[label], links.held[label]
        member = after
        while True:
            links.label[member] = after
            member = links.after[member]
            if member == after:
                break
    links.label[item] = item
    links.total[item], links.held[item] = links.weight[item], links.sources[item]
    links.after[item] = links.before[item] = item


@inner
def join(links: LinkArrays, item: int, label: int) -> None:
    """Put an item that is by itself into another cluster."""
    last = links.before[label]
    links.after[last], links.before[item] = item, last
    links.after[item], links.before[label] = label, item
    links.label[item] = label
    links.total[label] += links.weight[item]
    links.held[label] |= links.sources[item]
