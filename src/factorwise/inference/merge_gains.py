"""The exact change of a model's score at every merge of a tree, for each of its templates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.walk import Walk
from factorwise.inference.merge_trees import MergeTree
from factorwise.kernels.clusterings.tree_merges import draw_tree_merge, keep_gain
from factorwise.kernels.compile.programs import Program
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.types import Bools, Float64s
from factorwise.world.partition import Partition


def add_gains(tree: MergeTree, model: Model) -> MergeTree:
    """Return the tree with the gain of each template of a model at its nodes.

    A node that a template forbids is impossible, and so are the nodes above it. At impossible nodes gains are
    zero.
    """
    possible, gains = tree.possible.copy(), dict(tree.gains)
    for template, offset in model.parts():
        alone = Model([template], model.weights[offset : offset + template.size])
        merges = _Merges.along(tree, alone, possible)
        if tree.n_items:
            chain = Walk(merges, Partition.singletons(tree.n_items))
            chain.advance(Stream(0), 1.0, len(tree.mean) - tree.n_items)
        gains[template.name] = merges.gain
        possible = ~merges.blocked
    return replace(tree, possible=possible, gains=gains)


@dataclass(frozen=True, eq=False)
class _Merges:
    """A transition kernel that makes the merges of a tree one after the other; see `merge_programs`."""

    model: Model
    tree: MergeTree
    blocked: Bools
    gain: Float64s
    changes = "many"

    @classmethod
    def along(cls, tree: MergeTree, model: Model, possible: Bools) -> _Merges:
        """Start with every item in a cluster of its own."""
        return cls(model, tree, ~possible, np.zeros(len(tree.mean)))

    def programs(self, parts: Surroundings) -> dict[str, Any]:
        """Return the programs that propose the next merge and record its gain."""
        items = np.arange(self.tree.n_items)
        arrays = {
            "left": self.tree.left,
            "right": self.tree.right,
            "item": np.append(items, np.zeros(len(self.tree.mean) - len(items), np.int64)),
            "blocked": self.blocked,
            "gain": self.gain,
            "turn": np.full(1, len(items), np.int64),
        }
        return {
            "draw": Program(draw=draw_tree_merge, arrays=arrays, name="merges of a tree"),
            "accept": Program(accept=keep_gain, arrays=arrays, name="the gains of merges"),
        }
