"""Choose blocking rules, from labelled entities or from the kinds of the fields.

Both methods are greedy: they choose the rule with the highest gain in the objective per pair, until no rule
adds much. The objectives are submodular, so the gain of a rule only falls as others are chosen, and it
rarely needs to be computed again.
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

_TOO_LARGE = 200  # a rule with more pairs than this many budgets is not considered
_SHARES = 4  # most of the budget (one part in this many) that one rule is expected to use
_MOST = 16  # largest number of rules
_TELLS_NOTHING = 0.2  # largest share of all pairs for rules on categories alone


class Thrift(NamedTuple):
    """Least gain of a chosen rule: in total, per pair and item, and as its share of new pairs."""

    gain: float
    gain_per_pair: float
    new_share: float


_UNLABELLED = Thrift(0.002, 2e-4, 0.1)
_LEARNED = Thrift(0.0005, 3e-5, 0.005)  # lower, because gains are measured on labels instead of simulated


class Chosen(NamedTuple):
    """A chosen rule, its estimated number of pairs and its gain in the objective."""

    rule: Rule
    pairs: float
    gain: float


def default_rules(
    specs: Sequence[FieldSpec], normal: NormalTable, *, n_items: int | None = None
) -> list[Rule]:
    """Choose rules by the kinds of the fields and the frequencies of their values.

    n_items
        Number of records that the rules will be applied to, if it is larger than the table.
    """
    sample = RecordSample(normal, n_items)
    pool = _telling(rule_pool(specs, sample), specs, sample)
    names = {spec.name for spec in specs if spec.kind == "name"}
    # vectors and scores may depend on the whole record, including names
    whole = {spec.name for spec in specs if spec.kind in ("vector", "scores")}
    if names:
        # Records of one person almost always share a part of the name, so rules without names must be cheap.
        few = _free_pairs(sample.n_items) * sample.n_items
        pool = [one for one in pool if (names | whole) & one.rule.fields or one.pairs <= few]
    objective = Imagined(pool, sample, specs)
    return [one.rule for one in choose(pool, objective, sample, _UNLABELLED)]


def learned_rules(
    specs: Sequence[FieldSpec], normal: NormalTable, entity: Ints, *, n_items: int | None = None
) -> list[Rule]:
    """Choose rules by what labelled records of one entity share.

    entity : int[items]
        The entity of each item; -1 where it is unknown.
    n_items
        Number of records that the rules will be applied to, if it is larger than the table.
    """
    sample = RecordSample(normal, n_items)
    pool = _telling(rule_pool(specs, sample), specs, sample)
    objective = Labelled(pool, sample, entity, Imagined(pool, sample, specs))
    return [one.rule for one in choose(pool, objective, sample, _LEARNED)]


def _telling(pool: Sequence[PoolRule], specs: Sequence[FieldSpec], sample: RecordSample) -> list[PoolRule]:
    """Leave out rules on categories that pair too many records, such as a column of yes and no.

    Rules on other kinds are kept in any case, because they may be the only ones of the table.
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
    """Return the base cost of a rule in pairs per item, which is higher if the budget per item is large."""
    return min(10.0, max(0.5, 200_000 / max(n_items, 1)))
