"""Count the pairs of blocking rules from the sizes of their blocks, without generating pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from factorwise.apps.resolution.blocking.blocks import blocks_of
from factorwise.apps.resolution.blocking.candidates import SPARE, default_budget
from factorwise.apps.resolution.blocking.keys import KeyMaker
from factorwise.apps.resolution.blocking.limits import Limits, fitting_limits, overlap, pair_count
from factorwise.apps.resolution.blocking.rules import Rule
from factorwise.apps.resolution.normalize.forms import NormalTable


class RuleCount(NamedTuple):
    """Counts of one rule: blocks of two or more records, size of the largest, and pairs in all blocks."""

    rule: Rule
    blocks: int
    largest: int
    pairs: int


class BlockCount(NamedTuple):
    """Counts of all rules.

    rules
        The counts of each rule.
    limits
        Size up to which blocks would be joined whole, and number of neighbors of a record in larger ones.
    pairs
        Estimated number of distinct pairs; several rules may generate the same pair.
    """

    rules: tuple[RuleCount, ...]
    limits: Limits
    pairs: int


def count_blocks(
    normal: NormalTable, rules: Sequence[Rule], budget: int | None = None, *, share: float = 1.0
) -> BlockCount:
    """Count blocks and pairs; ``budget`` is as in `find_candidates`.

    share
        Share of a larger table of which these records are a random sample. Pairs and block sizes are then
        estimates for that table, each pair of which is in the sample with probability ``share`` squared. The
        number of blocks is a lower bound.
    """
    n_items = round(normal.n_rows / share)
    allowed = default_budget(n_items) if budget is None else budget
    maker = KeyMaker(normal)
    blocks = [blocks_of(maker.keys(rule), normal.n_rows) for rule in rules]
    sizes = [np.round(found.size / share).astype(np.int64) for found in blocks]
    wanted, most = Limits(n_items, n_items), int(allowed * SPARE)  # as in `find_candidates`
    limits = fitting_limits(sizes, wanted, most)
    for _ in range(2 if limits != wanted else 0):
        limits = fitting_limits(sizes, wanted, int(most * overlap(normal, rules, blocks, limits)))
    # Pairs in whole blocks are estimated from the sampled pairs, because estimated sizes are inaccurate.
    here = [found.size for found in blocks]
    joined = [(size <= limits.largest) for size in sizes]
    made = sum(
        round(pair_count(own[whole]) / share**2) + pair_count(size[~whole], limits)
        for own, size, whole in zip(here, sizes, joined, strict=True)
    )
    times = overlap(normal, rules, blocks, limits) if made else 1.0
    counts = tuple(
        RuleCount(rule, len(size), int(size.max(initial=0)), round(pair_count(own) / share**2))
        for rule, size, own in zip(rules, sizes, here, strict=True)
    )
    return BlockCount(counts, limits, min(allowed, round(made / times)))
