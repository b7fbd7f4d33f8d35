"""How many pairs blocking rules would make, from the sizes of their blocks, before a pair is made."""

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
    """What one rule would do: blocks of two or more records, the largest, and the pairs in all of them."""

    rule: Rule
    blocks: int
    largest: int
    pairs: int


class BlockCount(NamedTuple):
    """What all rules would do.

    rules
        One count each.
    limits
        Blocks up to which size would be joined whole, and how many neighbors a record would meet in others.
    pairs
        Different pairs, estimated: rules make some of them more than once.
    """

    rules: tuple[RuleCount, ...]
    limits: Limits
    pairs: int


def count_blocks(
    normal: NormalTable, rules: Sequence[Rule], budget: int | None = None, *, share: float = 1.0
) -> BlockCount:
    """Count blocks and pairs; ``budget`` is as in `find_candidates`.

    share
        Of the records of a larger table that these are, drawn at random. Then pairs, and the sizes of blocks,
        are estimates for that table, each of whose pairs is here with a probability of ``share`` squared; of
        blocks there are at least so many.
    """
    n_items = round(normal.n_rows / share)
    allowed = default_budget(n_items) if budget is None else budget
    maker = KeyMaker(normal)
    blocks = [blocks_of(maker.keys(rule), normal.n_rows) for rule in rules]
    sizes = [np.round(found.size / share).astype(np.int64) for found in blocks]
    wanted, most = Limits(n_items, n_items), int(allowed * SPARE)  # as `find_candidates` has it
    limits = fitting_limits(sizes, wanted, most)
    for _ in range(2 if limits != wanted else 0):
        limits = fitting_limits(sizes, wanted, int(most * overlap(normal, rules, blocks, limits)))
    # Pairs in blocks that are joined whole are counted from the pairs here, not from sizes, which are rough.
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
