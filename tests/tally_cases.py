"""Items with keys and bags, and a tally of every form over them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from factorwise.model.model import Model
from factorwise.model.templates import AllAgree, BagCosine, DistinctValues, SomeAgree, TallyTemplate
from factorwise.variables.bags import Bags
from factorwise.variables.fields import Fields


def lists_for(n, seed=0):
    """A few words for each item; the first has none, and some words are of one item only."""
    rng = np.random.default_rng([seed, n])
    lists = [[*rng.integers(0, 4, rng.integers(1, 4)).tolist(), *[100 + i] * (i % 2)] for i in range(n)]
    return [[], *lists[1:]]


def words_for(n, seed=0):
    return Bags.from_lists(lists_for(n, seed))


def names_for(n, seed=0):
    values = np.random.default_rng([seed, n, 1]).integers(-1, 3, n)
    return Bags.from_field(Fields(name=values), "name")


def surprise(count):
    return count * math.log(count) if count > 0 else 0.0


def share_and_pairs(total, size):
    return total / size, size > 2


def pairs(count):
    return count * (count - 1) // 2


def plain_total(total, size):
    return total


TALLIES = {
    "distinct": lambda n: DistinctValues("distinct", names_for(n)),
    "distinct words": lambda n: DistinctValues("distinct words", words_for(n)),
    "cosine": lambda n: BagCosine("cosine", words_for(n)),
    "all": lambda n: AllAgree("all", names_for(n)),
    "some": lambda n: SomeAgree("some", words_for(n)),
    "pairs": lambda n: TallyTemplate("pairs", names_for(n), pairs, plain_total, ["equal pairs"]),
    "reals": lambda n: TallyTemplate(
        "reals", words_for(n), surprise, share_and_pairs, ["surprise", "large"], unit=2**-20
    ),
}


def tally_model(names, n, seed=0):
    templates = [TALLIES[name](n) for name in names]
    size = sum(template.size for template in templates)
    return Model(templates, np.random.default_rng([seed, n]).normal(scale=0.7, size=size))


def counts_of(bags, members):
    """Amounts of each key among some items."""
    total = Counter()
    for item in members:
        total.update(bags.of(int(item)))
    return total
