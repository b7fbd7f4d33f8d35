"""Which blocking rules to use: from labelled entities, or from what the fields are.

Both ways choose greedily, the rule that adds most to the objective for the pairs it costs first, until hardly
anything is left to add. The objectives are submodular, so that what a rule adds only falls as others are
taken, and need rarely be looked at again.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from factorwise.apps.resolution.blocking.candidates import default_budget
from factorwise.apps.resolution.blocking.objectives import Imagined, Labelled, Objective
from factorwise.apps.resolution.blocking.pool import PoolRule, RecordSample, rule_pool
from factorwise.apps.resolution.blocking.rules import Rule
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.types import Ints

_TOO_LARGE = 200  # budgets that a rule alone may exceed before it is of no use
_SHARES = 4  # of a rule that makes more than this part of the budget, large blocks will not be joined whole
_MOST = 16  # rules
_TELLS_NOTHING = 0.2  # of all pairs: a category that puts more of them together is no evidence


class Thrift(NamedTuple):
    """What a rule must add to be taken: at all, for each pair an item that it costs, and in new pairs."""

    gain: float
    gain_per_pair: float
    new_share: float


_UNLABELLED = Thrift(0.002, 2e-4, 0.1)
_LEARNED = Thrift(0.0005, 3e-5, 0.005)  # here what a rule adds is seen, not imagined


class Chosen(NamedTuple):
    """A chosen rule, the pairs it is estimated to make and what it added to the objective."""

    rule: Rule
    pairs: float
    gain: float


def default_rules(
    specs: Sequence[FieldSpec], normal: NormalTable, *, n_items: int | None = None
) -> list[Rule]:
    """Choose rules by the kinds of the fields and the frequencies of their values.

    n_items
        Number of records the rules are meant for, if there will be more than in the table.
    """
    sample = RecordSample(normal, n_items)
    pool = _telling(rule_pool(specs, sample), specs, sample)
    names = {spec.name for spec in specs if spec.kind == "name"}
    # vectors and scores look at all of a record, names included
    whole = {spec.name for spec in specs if spec.kind in ("vector", "scores")}
    if names:
        # What has no name in common is hardly one person, however often it meets.
        few = _free_pairs(sample.n_items) * sample.n_items
        pool = [one for one in pool if (names | whole) & one.rule.fields or one.pairs <= few]
    objective = Imagined(pool, sample, specs)
    return [one.rule for one in choose(pool, objective, sample, _UNLABELLED)]


def learned_rules(
    specs: Sequence[FieldSpec], normal: NormalTable, entity: Ints, *, n_items: int | None = None
) -> list[Rule]:
    """Choose rules by what records of one entity share.

    entity : int[items]
        The entity of each item, -1 where it is not known.
    n_items
        Number of records the rules are meant for, if there will be more than in the table.
    """
    sample = RecordSample(normal, n_items)
    pool = _telling(rule_pool(specs, sample), specs, sample)
    objective = Labelled(pool, sample, entity, Imagined(pool, sample, specs))
    return [one.rule for one in choose(pool, objective, sample, _LEARNED)]


def _telling(pool: Sequence[PoolRule], specs: Sequence[FieldSpec], sample: RecordSample) -> list[PoolRule]:
    """Leave out rules by which nearly everything meets, as by a column of yes and no.

    A name that all records share may be all that there is to go by; a category that most have tells nothing.
    """
    categories = {spec.name for spec in specs if spec.kind == "category"}
    most = _TELLS_NOTHING * sample.n_items * (sample.n_items - 1) / 2
    return [one for one in pool if one.pairs <= most or not one.rule.fields <= categories]


def choose(
    pool: Sequence[PoolRule], objective: Objective, sample: RecordSample, thrift: Thrift
) -> list[Chosen]:
    """Choose rules greedily by gain per pair, within the budget of pairs."""
    n_items = sample.n_items
    budget = float(default_budget(n_items))
    useful = [k for k, one in enumerate(pool) if one.pairs <= _TOO_LARGE * budget]
    if not useful and pool:
        useful = [min(range(len(pool)), key=lambda k: pool[k].pairs)]

    share, free = budget / _SHARES, _free_pairs(n_items)

    def cost(number: int) -> float:
        pairs = pool[number].pairs
        return float(min(pairs, (pairs * share) ** 0.5)) / max(n_items, 1)

    def rate(number: int, gain: float) -> float:
        return gain / (free + cost(number))

    waiting = [(-rate(k, objective.gain(k)), k, 0) for k in useful]
    heapq.heapify(waiting)
    chosen: list[Chosen] = []
    spent = 0.0
    while waiting and len(chosen) < _MOST:
        _, number, looked_at = heapq.heappop(waiting)
        gain = objective.gain(number)
        if gain < max(thrift.gain, thrift.gain_per_pair * cost(number)):
            continue
        if looked_at < len(chosen):
            heapq.heappush(waiting, (-rate(number, gain), number, len(chosen)))
            continue
        new_share = sample.new_share(pool[number].rule, [one.rule for one in chosen])
        pairs = min(pool[number].pairs * new_share, share)
        if new_share < thrift.new_share or (chosen and spent + pairs > budget):
            continue
        objective.add(number)
        chosen.append(Chosen(pool[number].rule, pool[number].pairs, gain))
        spent += pairs
    return chosen


def _free_pairs(n_items: int) -> float:
    """Pairs an item that a rule is taken to cost even if it makes fewer: where many can be afforded, more."""
    return min(10.0, max(0.5, 200_000 / max(n_items, 1)))
