"""A template of your own, checked: a factor for every cluster that holds both ends of a forbidden link."""

import numpy as np

import factorwise as fw
from factorwise.testing import check_template


class Rivals(fw.Template):
    """Counts the rivals that are in one cluster."""

    name, size = "rivals", 1

    def __init__(self, pairs):
        self.pairs = np.asarray(pairs)

    def statistics(self, world):
        """Count in the whole world."""
        first, second = world.labels[self.pairs].T
        return fw.SparseVector.from_dense(np.array([np.sum(first == second)]))

    def difference(self, world, diff):
        """Count among the pairs that the diff joins, minus those that it separates."""
        moves = np.isin(self.pairs, diff.items)
        label = world.labels[self.pairs[moves.sum(axis=1) == 1]]  # both moving or both staying: untouched
        other = label[~moves[moves.sum(axis=1) == 1]]
        return fw.SparseVector.from_dense(
            np.array([np.sum(other == diff.target) - np.sum(other == diff.source)])
        )


world = fw.Partition.from_labels([0, 0, 1, 1, 2, 2])
rivals = Rivals([(0, 1), (1, 2), (3, 5)])
check_template(rivals, world, steps=500)
print("difference agrees with statistics along 500 random diffs")
print(
    "gain of merging clusters 0 and 1:", fw.Model([rivals], [-2.0]).gain(world, fw.moves.merge(world, 0, 1))
)
