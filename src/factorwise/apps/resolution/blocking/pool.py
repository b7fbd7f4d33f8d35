"""The pool of rules to choose from: what records of one entity tend to share, by kind of field.

An *atom* is one key part, or a few that belong together. Its *traits* are the parts of fields that must be
free of errors for it to find a matching pair, with rough error rates from experience. Atoms that generate too
many pairs alone are combined in twos.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from factorwise.apps.resolution.blocking.blocks import blocks_of, drawn_pairs
from factorwise.apps.resolution.blocking.keys import KeyMaker, share_key
from factorwise.apps.resolution.blocking.limits import pair_count
from factorwise.apps.resolution.blocking.rules import Part, Rule
from factorwise.apps.resolution.comparisons.derived import form_of, has_form
from factorwise.apps.resolution.normalize.forms import Form, NormalTable
from factorwise.apps.resolution.schema.fields import FieldSpec

SAMPLE = 20_000  # sampled rows from which numbers of pairs are estimated
_BROAD = 1.0  # pairs per item above which an atom is combined with others
_DRAWN = 300  # random pairs of a rule that are looked up in other rules
_RARE = 100  # most records that share a rare item
_LEAST_THERE = {"codes": 0.05}  # least share of records with a form for it to be used

# Atoms by kind: (form, cut, size) of each part, and the error rate of each trait.
_ATOMS: Mapping[str, Sequence[tuple[tuple[tuple[str, str, float], ...], Mapping[str, float]]]] = {
    "name": (
        ((("last", "whole", 0),), {"last": 0.15, "order": 0.03}),
        ((("last_sound", "whole", 0),), {"last": 0.08, "order": 0.03}),
        ((("last", "prefix", 3),), {"last": 0.08, "order": 0.03}),
        ((("root", "whole", 0),), {"first": 0.25, "order": 0.03}),
        ((("first_sound", "whole", 0),), {"first": 0.2, "order": 0.03}),
        ((("first_initial", "whole", 0),), {"first": 0.04, "order": 0.03}),
        ((("first", "prefix", 3),), {"first": 0.15, "order": 0.03}),
        (
            (("last", "whole", 0), ("first_initial", "whole", 0)),
            {"last": 0.15, "first": 0.04, "order": 0.03},
        ),
        (
            (("last_sound", "whole", 0), ("first_initial", "whole", 0)),
            {"last": 0.08, "first": 0.04, "order": 0.03},
        ),
        ((("last", "whole", 0), ("root", "whole", 0)), {"last": 0.15, "first": 0.25, "order": 0.03}),
        ((("tokens", "items", 0), ("tokens", "items", 0)), {"last": 0.15, "first": 0.25}),
    ),
    "text": (
        ((("text", "whole", 0),), {"words": 0.3, "spelling": 0.2, "start": 0.2}),
        ((("text", "prefix", 6),), {"start": 0.35}),
        ((("tokens", "items", 4),), {"rare": 0.2}),
        ((("codes", "items", 4),), {"code": 0.2}),
        ((("tokens", "items", 0), ("tokens", "items", 0)), {"words": 0.2}),
        ((("text", "bands", 3),), {"spelling": 0.2}),
    ),
    "category": (((("text", "whole", 0),), {"value": 0.1}),),
    "identifier": (((("code", "whole", 0),), {"value": 0.15}), ((("code", "prefix", 4),), {"value": 0.1})),
    "list": (
        ((("keys", "items", 0),), {"items": 0.3}),
        ((("keys", "items", 0), ("keys", "items", 0)), {"items": 0.5}),
        ((("items", "items", 0),), {"items": 0.35}),
        ((("items", "items", 0), ("items", "items", 0)), {"items": 0.5}),
    ),
    "number": (((("number", "whole", 0),), {"value": 0.2}),),
    "date": (
        ((("date", "whole", 0),), {"year": 0.1, "day": 0.15}),
        ((("year", "whole", 0),), {"year": 0.1}),
        ((("month", "whole", 0), ("day", "whole", 0)), {"day": 0.15}),
    ),
    "address": (
        ((("text", "whole", 0),), {"words": 0.3, "spelling": 0.2}),
        ((("street", "whole", 0),), {"words": 0.35}),
        ((("number", "whole", 0), ("street", "prefix", 4)), {"words": 0.2, "number": 0.1}),
        ((("number", "whole", 0),), {"number": 0.1}),
        ((("postcode", "whole", 0),), {"postcode": 0.1}),
        ((("tokens", "items", 4),), {"rare": 0.2}),
        ((("tokens", "items", 0), ("tokens", "items", 0)), {"words": 0.2}),
        ((("text", "bands", 3),), {"spelling": 0.2}),
    ),
    "email": (((("email", "whole", 0),), {"value": 0.2}), ((("local", "whole", 0),), {"value": 0.15})),
    "phone": (((("phone", "whole", 0),), {"value": 0.2}), ((("tail", "whole", 0),), {"value": 0.15})),
    "location": (
        ((("text", "whole", 0),), {"words": 0.2}),
        ((("tokens", "items", 4),), {"words": 0.1}),
        ((("latitude", "rounded", 0.1), ("longitude", "rounded", 0.1)), {"place": 0.1}),
    ),
    "vector": (((("vector", "nearest", 10),), {"meaning": 0.1}),),
    "scores": (((("pairs", "scored", 0),), {"score": 0.1}),),
}


@dataclass(frozen=True, slots=True)
class PoolRule:
    """A rule that may be chosen.

    traits
        What must be free of errors for the rule to find a matching pair, with the error rates.
    pairs
        Estimated number of pairs.
    """

    rule: Rule
    traits: Mapping[tuple[str, str], float]
    pairs: float


class RecordSample:
    """Sampled rows of a table, from which the numbers of pairs in the whole table are estimated.

    n_items
        Number of rows of the table that the rules will be applied to.
    """

    def __init__(self, normal: NormalTable, n_items: int | None = None, size: int = SAMPLE) -> None:
        self.normal = normal
        self.n_items = n_items or normal.n_rows
        self.rows = np.arange(normal.n_rows)
        if normal.n_rows > size:
            self.rows = np.sort(np.random.default_rng(0).choice(normal.n_rows, size, replace=False))
        self.maker = KeyMaker(normal, self.rows if len(self.rows) < normal.n_rows else None)

    def pairs(self, rule: Rule) -> float:
        """Estimate the number of pairs of a rule over all items."""
        blocks = blocks_of(self.maker.keys(rule), len(self.rows))
        return pair_count(blocks.size) * (self.n_items / max(len(self.rows), 1)) ** 2

    def new_share(self, rule: Rule, others: Sequence[Rule]) -> float:
        """Estimate the share of a rule's pairs that none of the other rules generates."""
        blocks = blocks_of(self.maker.keys(rule), len(self.rows))
        if not len(blocks.size):
            return 1.0
        pairs = drawn_pairs(blocks, blocks.size * (blocks.size - 1.0), _DRAWN, seed=4)
        found = np.zeros(_DRAWN, bool)
        for other in others:
            found |= share_key(self.maker.keys(other), pairs, len(self.rows))
        return float(1.0 - found.mean())


def rule_pool(specs: Sequence[FieldSpec], sample: RecordSample) -> list[PoolRule]:
    """Return the rules to choose from, with their estimated numbers of pairs."""
    singles = [
        PoolRule(Rule(parts), traits, sample.pairs(Rule(parts)))
        for parts, traits in atoms(specs, sample.normal, sample.n_items)
    ]
    few = {spec.name for spec in specs if spec.kind in ("vector", "scores")}  # these have few pairs anyway
    broad = [
        single
        for single in singles
        if single.pairs > _BROAD * sample.n_items and not single.rule.fields <= few
    ]
    pool = list(singles)
    known = {frozenset(single.rule.parts) for single in singles}
    for one, other in combinations(broad, 2):
        if _combinable(one, other):
            rule = Rule(one.rule.parts + other.rule.parts)
            if frozenset(rule.parts) in known:
                continue
            known.add(frozenset(rule.parts))
            traits = {
                trait: max(one.traits.get(trait, 0.0), other.traits.get(trait, 0.0))
                for trait in [*one.traits, *other.traits]
            }
            pool.append(PoolRule(rule, traits, sample.pairs(rule)))
    return pool


def _combinable(one: PoolRule, other: PoolRule) -> bool:
    """Return whether two atoms use different traits, and at most one of their parts has several keys."""
    if one.rule.fields & other.rule.fields:
        return not set(one.traits) - {(f, "order") for f, _ in one.traits} & set(other.traits)
    several = [sum(part.cut in {"items", "bands"} for part in atom.rule.parts) for atom in (one, other)]
    return sum(several) <= 1


def atoms(
    specs: Sequence[FieldSpec], normal: NormalTable, n_items: int
) -> Iterator[tuple[tuple[Part, ...], dict[tuple[str, str], float]]]:
    """Yield the atoms of fields, with the error rates of their traits."""
    for spec in specs:
        if spec.name not in set(normal):
            continue
        field = normal[spec.name]
        there = {*field, *(["codes"] if has_form(normal, spec.name, "codes") else [])}
        for forms, traits in _ATOMS.get(spec.kind, ()):
            if all(form in there for form, _, _ in forms) and any(
                _is_there(form_of(normal, spec.name, form), _LEAST_THERE.get(form, 0.0))
                for form, _, _ in forms
            ):
                parts = tuple(_part(spec.name, *form, n_items=n_items) for form in forms)
                yield parts, {(spec.name, trait): error for trait, error in traits.items()}


def _is_there(form: Form, least: float) -> bool:
    """Return whether any records have a form, and at least the share ``least`` of all."""
    count = len(form) - int(form.missing.sum())
    return count > 0 and count >= least * len(form)


def _part(field: str, form: str, cut: str, size: float, *, n_items: int) -> Part:
    if cut == "bands":
        rows = 3 if n_items <= 20_000 else 4 if n_items <= 500_000 else 5
        return Part(field, form, cut, size, bands=10, rows=rows)
    if cut == "items" and size:
        return Part(field, form, cut, size, most=_RARE)
    return Part(field, form, cut, size)
