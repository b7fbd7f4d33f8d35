"""Exact inference on factor graphs.

`Enumeration` visits every setting and is the reference for all others; `Elimination` answers single
questions; `ChainOracle` and `TreeOracle` run in time linear in the tables if the graph has no loops;
`JunctionTree` takes any graph whose treewidth fits the memory, and otherwise says how much it would need. All
offer ``marginals``, ``log_partition``, ``best``, ``k_best`` and ``sample``; the ``chain_`` functions do the
same for dense arrays of scores. `PartitionEnumeration` visits every clustering of a few items,
`WorldEnumeration` any list of worlds, such as `all_worlds` like a given one.
"""

from __future__ import annotations

from factorwise.inference.exact.chain import (
    ChainMarginals,
    ChainOracle,
    chain_best,
    chain_k_best,
    chain_log_partition,
    chain_marginals,
    chain_sample,
)
from factorwise.inference.exact.clusterings import PartitionEnumeration, all_partitions
from factorwise.inference.exact.elimination import Elimination, EliminationOrder, elimination_order
from factorwise.inference.exact.enumeration import Enumeration
from factorwise.inference.exact.junction_tree import JunctionTree
from factorwise.inference.exact.tree import TreeOracle
from factorwise.inference.exact.worlds import WorldEnumeration, all_worlds

__all__ = [
    "ChainMarginals",
    "ChainOracle",
    "Elimination",
    "EliminationOrder",
    "Enumeration",
    "JunctionTree",
    "PartitionEnumeration",
    "TreeOracle",
    "WorldEnumeration",
    "all_partitions",
    "all_worlds",
    "chain_best",
    "chain_k_best",
    "chain_log_partition",
    "chain_marginals",
    "chain_sample",
    "elimination_order",
]
