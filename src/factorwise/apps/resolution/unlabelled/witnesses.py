"""Prepare columns as evidence (witnesses): a comparison level for each pair, 0 where a value is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.measures import string_measure
from factorwise.apps.resolution.comparisons.overlaps import COSINE, Overlaps
from factorwise.apps.resolution.normalize.forms import Form, Lists, NormalField, NormalTable, Numbers, Strings
from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.apps.resolution.unlabelled.texts import TextLevels, set_codes
from factorwise.errors import InvalidArgumentError
from factorwise.types import Bools, Ints

Levels = NDArray[np.uint8]
SPECIFIC, SHARING = 0.5, 3  # least share of distinct values in a column; most records of a rare value

NEARER = (0.5, 0.9, 0.99, 0.999, 0.9998)  # quantiles of random cosines that are level thresholds
SCORES = (-4.0, -2.0, 0.0, 2.0, 4.0)  # thresholds of levels, in log odds
_RANDOM = 100_000  # random pairs of vectors


class ValueWitness(NamedTuple):
    """One evidence column.

    name
        Name of the column.
    top
        The highest level, which means exactly equal.
    code : int64[rows]
        Id of each record's value; -1 where it is missing.
    levels
        Returns the comparison levels of pairs of rows.
    is_code
        Whether the values are codes, such as account numbers or e-mail addresses.
    edges
        Thresholds of the levels of vectors, which depend on the training table.
    background
        Share of all pairs of records at each level from 1 on; it is known only for scored pairs.
    factor
        Factor of the column's match weights, chosen by the user.
    """

    name: str
    top: int
    code: NDArray[np.int64]
    levels: Callable[[Ints, Ints], Levels]
    is_code: bool = False
    edges: tuple[float, ...] = ()
    background: tuple[float, ...] = ()
    factor: float = 1.0

    def share_rare_value(self, first: Ints, second: Ints) -> Bools:
        """Return which pairs share a rare value; none if most values of the column are not distinct."""
        counts = np.bincount(self.code[self.code >= 0], minlength=int(self.code.max(initial=0)) + 1)
        if not counts.any() or (counts > 0).sum() < SPECIFIC * counts.sum():
            return np.zeros(len(first), bool)
        code = self.code[first]
        equal: Bools = (code >= 0) & (code == self.code[second]) & (np.append(counts, 0)[code] <= SHARING)
        return equal


def witnesses_of(
    normal: NormalTable, columns: Sequence[str], edges: Mapping[str, tuple[float, ...]]
) -> list[ValueWitness]:
    """Prepare columns as evidence; ``edges`` are thresholds from a fitted model, by column."""
    return [_witness(normal[name], edges.get(name, ())) for name in columns]


def _witness(field: NormalField, edges: tuple[float, ...]) -> ValueWitness:
    if field.kind == "vector":
        return _of_vectors(field.name, field["vector"], edges)
    if field.kind == "scores":
        return _of_scores(field.name, field["pairs"])
    if field.kind == "list":
        form = field.lists("keys" if "keys" in field else "items")
        return _of_lists(field.name, form)
    if field.kind == "address":
        return _of_addresses(field)
    if "tokens" in field and "text" in field:
        texts = TextLevels(field)
        return ValueWitness(field.name, 6, texts.code, texts.levels)
    if field.kind == "date":
        return _of_strings(field.name, field.strings("digits"), "edits", (0.6, 0.85))
    if field.kind == "name":
        return _of_names(field)
    for name in ("code", "email", "tail"):
        if name in field:
            found = _of_strings(field.name, field.strings(name), "edits", (0.6, 0.8))
            return found._replace(is_code=True)
    if "text" in field:
        return _of_strings(field.name, field.strings("text"), "jaro-winkler", (0.8, 0.92))
    form_name = next(name for name in ("number", "latitude", "longitude") if name in field)
    return _of_numbers(field.name, field.numbers(form_name), form_name)


def _of_strings(name: str, form: Strings, measure: str, cuts: Sequence[float]) -> ValueWitness:
    likeness = string_measure(form, measure)
    code, edges = form.codes.astype(np.int64), np.asarray(cuts, np.float32)
    top = len(cuts) + 2

    def levels(first: Ints, second: Ints) -> Levels:
        found = (1 + np.searchsorted(edges, likeness(first, second), side="right")).astype(np.uint8)
        return _finished(found, code, top, first, second)

    return ValueWitness(name, top, code, levels)


def _of_names(field: NormalField) -> ValueWitness:
    form = field.strings(next(name for name in ("full", "given", "last") if name in field))
    return _of_strings(field.name, form, "jaro-winkler", (0.7, 0.85, 0.93))


def _of_numbers(name: str, form: Numbers, form_name: str) -> ValueWitness:
    values = form.values
    known = values[~np.isnan(values)]
    years = form_name == "number" and len(known) > 0 and bool(((known > 1000) & (known < 2200)).mean() > 0.9)
    code = np.where(np.isnan(values), -1, np.unique(values, return_inverse=True)[1]).astype(np.int64)

    def levels(first: Ints, second: Ints) -> Levels:
        one, two = values[first], values[second]
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.abs(one - two)
            cuts: tuple[float, ...] = (8.0, 3.0, 1.0)
            if form_name != "number":
                cuts = (0.1, 0.01, 0.001)
            elif not years:
                apart, cuts = apart / np.maximum(np.abs(one), np.abs(two)), (0.3, 0.05, 0.005)
            found = 1 + sum((apart <= cut).astype(np.uint8) for cut in cuts)
        return _finished(np.asarray(found, np.uint8), code, 5, first, second)

    return ValueWitness(name, 5, code, levels)


def _of_lists(name: str, form: Lists) -> ValueWitness:
    overlaps, code = Overlaps(form, (COSINE,)), set_codes(form)
    edges = np.asarray((1e-6, 0.15, 0.4), np.float32)

    def levels(first: Ints, second: Ints) -> Levels:
        (cosine,) = overlaps(first, second)
        found = (1 + np.searchsorted(edges, np.nan_to_num(cosine), side="right")).astype(np.uint8)
        return _finished(found, code, 5, first, second)

    return ValueWitness(name, 5, code, levels)


def _of_vectors(name: str, form: Form, edges: tuple[float, ...]) -> ValueWitness:
    """Prepare vectors; without ``edges``, the thresholds are quantiles of the cosine of random pairs."""
    assert isinstance(form, Vectors)
    if len(edges) not in (0, len(NEARER)):
        raise InvalidArgumentError(f"vectors have {len(NEARER)} edges of levels, but {len(edges)} are given")
    code = form.codes.astype(np.int64)
    known = np.flatnonzero(code >= 0)
    if not edges and len(known) > 1:
        draws = np.random.default_rng(0)
        first = draws.integers(0, len(known), _RANDOM)
        second = (first + draws.integers(1, len(known), _RANDOM)) % len(known)
        found = np.quantile(form.cosines(known[first], known[second]), NEARER)
        edges = tuple(np.maximum.accumulate(found).tolist())
    starts, top = np.asarray(edges, np.float32), len(NEARER) + 2

    def levels(first: Ints, second: Ints) -> Levels:
        cosine = np.nan_to_num(form.cosines(first, second))
        found = (1 + np.searchsorted(starts, cosine, side="right")).astype(np.uint8)
        return _finished(found, code, top, first, second)

    return ValueWitness(name, top, code, levels, edges=edges)


def _of_scores(name: str, form: Form) -> ValueWitness:
    """Prepare pairs that another tool scored; level 1 is for pairs of its records that it did not score."""
    assert isinstance(form, PairValues)
    starts, known = np.asarray(SCORES, np.float32), ~form.missing
    top = len(SCORES) + 3  # no pair has this level, because scored pairs have no equal values

    def levels(first: Ints, second: Ints) -> Levels:
        score = form.lookup(first, second)
        found = np.where(np.isnan(score), 1, 2 + np.searchsorted(starts, score, side="right"))
        return np.where(known[first] & known[second], found, 0).astype(np.uint8)

    count = int(known.sum())
    seen = np.bincount(2 + np.searchsorted(starts, form.values, side="right"), minlength=top + 1)[1:]
    seen[0] = max(count * (count - 1) // 2 - int(seen.sum()), 1)
    background = tuple((seen / seen.sum()).tolist())
    return ValueWitness(name, top, np.full(form.n_rows, -1, np.int64), levels, background=background)


def _of_addresses(field: NormalField) -> ValueWitness:
    texts, house = TextLevels(field), field.strings("number").codes

    def levels(first: Ints, second: Ints) -> Levels:
        found = texts.levels(first, second)
        other = (house[first] >= 0) & (house[second] >= 0) & (house[first] != house[second])
        return np.where(other & (found > 3) & (found < 6), 3, found).astype(np.uint8)

    return ValueWitness(field.name, 6, texts.code, levels)


def _finished(found: Levels, code: NDArray[np.int64], top: int, first: Ints, second: Ints) -> Levels:
    """Set the level to the top for equal values and to 0 for missing ones."""
    found = np.minimum(found, top - 1)
    found[code[first] == code[second]] = top
    found[(code[first] < 0) | (code[second] < 0)] = 0
    return found
