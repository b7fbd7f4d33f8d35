"""A fast filter of candidate pairs, fitted with the model, so that most pairs are never compared in full.

Each record gets a *signature*: a byte for each of some normal forms (a hash of the value; 0 if it is
missing), and a word for each of some lists (a bit for each of its rarest items). Agreements and disagreements
of two signatures have integer weights, fitted by logistic regression. A pair is compared only if the sum of
its weights reaches a threshold.

The threshold is chosen so that nearly all relevant training pairs pass: those whose score is not far below
zero. If the model is applied to more records, scores are lower by an offset (see
`factorwise.apps.resolution.knowledge.Knowledge.for_size`), so fewer pairs are relevant and the threshold
rises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.joins import PairTest
from factorwise.apps.resolution.blocking.keys import rarest
from factorwise.apps.resolution.normalize.forms import Form, Lists, NormalTable, Numbers, Strings
from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.records.pair_joins import SHARED, pair_levels
from factorwise.rng import split_mix_words
from factorwise.types import Bools, Floats, Ints
from factorwise.validation import as_text, as_whole

_SCALE = 256  # factor by which weights are scaled before they are rounded to integers
_LARGEST = 1 << 20  # largest absolute weight, so that sums stay far within 32 bits
_ITEMS = 8  # number of rarest items of a list that set a bit
_PACKED = 8  # bytes of a word
_COLUMNS, _MASKS = 32, 6  # largest numbers of bytes and of words
_MATTERS = 2.0  # a pair is relevant above minus this score, in units of the temperature
_OFFSETS = 8  # number of integer offsets, from 0 on, with a threshold each
_LOST = 3e-4  # share of the relevant pairs that the filter may drop
_SPARED = 0.5  # least share of all pairs that a useful filter drops
_FEWEST = 1_000  # least number of training pairs
_MOST = 200_000  # largest number of training pairs
_RIDGE = 1.0  # L2 penalty
_NEWTON_STEPS = 12  # most Newton steps
_FARTHEST = 12.0  # bound of the log odds in Newton steps


class FilterReport(NamedTuple):
    """Statistics of a filter on the pairs that it was fitted on.

    pairs, kept
        Number of pairs, and of those that pass.
    true_pairs, lost
        Number of pairs of one entity, and of those that do not pass.
    """

    pairs: int
    kept: int
    true_pairs: int
    lost: int


@dataclass(frozen=True, slots=True)
class PairFilter:
    """A filter that decides which pairs are compared.

    columns, masks
        Field and form of each byte and of each word of a signature.
    weights
        For each column the weights of a missing value, of different values and of equal values.
    mask_weights
        For each mask the weights of no items, and of no, one, two and more shared bits.
    least
        Thresholds of the sum of weights, for score offsets of 0, 1, 2 and so on.
    report
        Statistics on the training pairs.
    offset
        How much lower the scores of pairs are than in training.
    """

    columns: tuple[tuple[str, str], ...]
    masks: tuple[tuple[str, str], ...]
    weights: tuple[tuple[int, ...], ...]
    mask_weights: tuple[tuple[int, ...], ...]
    least: tuple[int, ...]
    report: FilterReport
    offset: float = 0.0

    def __post_init__(self) -> None:
        sizes = ((self.columns, self.weights, 3), (self.masks, self.mask_weights, 1 + SHARED))
        for names, tables, size in sizes:
            if len(names) != len(tables) or any(len(table) != size for table in tables):
                raise InvalidArgumentError(f"a filter needs {size} weights for each of {len(names)} forms.")
        if not self.least or list(self.least) != sorted(self.least):
            raise InvalidArgumentError(f"least must be ascending sums, but {self.least} was given.")

    def test(self, normal: NormalTable, sources: Ints | None = None) -> PairTest:
        """Return the filter as a test for pairs of a table; ``sources`` is as in `PairTest.of_sources`."""
        least = self.least[min(int(self.offset), len(self.least) - 1)]
        equal, missing = packed_weights(self.weights)
        return PairTest.of_sources(sources)._replace(
            records=pack_signatures(signatures(normal, self.columns, self.masks)),
            equal=equal,
            missing=missing,
            shared=np.array(self.mask_weights, np.int32).reshape(-1, 1 + SHARED),
            enough=sums_needed(self.weights, self.mask_weights, least),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a model file."""
        plain = {**asdict(self), "report": list(self.report)}
        del plain["offset"]  # it depends on the table that the filter is applied to
        return plain

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> PairFilter:
        """Rebuild a filter from the values that `as_dict` returned."""

        def names(key: str) -> tuple[tuple[str, str], ...]:
            return tuple((as_text(key, field), as_text(key, form)) for field, form in saved[key])

        def tables(key: str) -> tuple[tuple[int, ...], ...]:
            return tuple(
                tuple(as_whole(key, value, -_LARGEST, _LARGEST) for value in row) for row in saved[key]
            )

        return cls(
            names("columns"),
            names("masks"),
            tables("weights"),
            tables("mask_weights"),
            tuple(as_whole("least", value, -(1 << 30), 1 << 30) for value in saved["least"]),
            FilterReport(*(as_whole("report", value, 0, 1 << 62) for value in saved["report"])),
        )


class Signatures(NamedTuple):
    """Signatures of the records of a table: uint8[records, columns] and uint64[records, masks]."""

    columns: NDArray[np.uint8]
    masks: NDArray[np.uint64]


def signatures(
    normal: NormalTable, columns: Sequence[tuple[str, str]], masks: Sequence[tuple[str, str]]
) -> Signatures:
    """Return the signatures of the records of a table."""
    bytes_ = np.zeros((normal.n_rows, len(columns)), np.uint8)
    for place, (field, form) in enumerate(columns):
        bytes_[:, place] = _bytes_of(normal[field][form])
    words = np.zeros((normal.n_rows, len(masks)), np.uint64)
    for place, (field, form) in enumerate(masks):
        words[:, place] = _mask_of(normal[field][form])
    return Signatures(bytes_, words)


def pack_signatures(signature: Signatures) -> NDArray[np.uint64]:
    """Pack signatures for `join_blocks`: words of eight columns each, a word of missing values, and masks."""
    rows, count = signature.columns.shape
    words = -(-count // _PACKED)
    columns = np.zeros((rows, words * _PACKED), np.uint8)
    columns[:, :count] = signature.columns
    absent = np.zeros((rows, _PACKED), np.uint8)
    absent[:, :words] = np.packbits(columns == 0, axis=1, bitorder="little")
    return np.hstack([columns.view("<u8"), absent.view("<u8"), signature.masks]).astype(np.uint64)


def packed_weights(weights: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the sums of weights by bit pattern of equal and of missing columns, for eight columns at a time.

    weights
        For each column the weights of a missing value, of different values and of equal values.
    """
    words = -(-len(weights) // _PACKED)
    table = np.zeros((words * _PACKED, 3), np.int64)
    table[: len(weights)] = np.array(weights, np.int64).reshape(-1, 3)
    none, different, same = table.T.reshape(3, words, _PACKED)
    bits = (np.arange(256)[:, None] >> np.arange(_PACKED)) & 1
    equal = (same - different) @ bits.T
    missing = none @ bits.T + different @ (1 - bits.T)
    return equal.astype(np.int32), missing.astype(np.int32)


def sums_needed(
    weights: Sequence[Sequence[int]], mask_weights: Sequence[Sequence[int]], least: int
) -> NDArray[np.int32]:
    """Return the least sum after each packed word that can still reach ``least``, and ``least``."""
    most = np.array([max(table) for table in weights], np.int64)
    words = [most[start:].sum() for start in range(_PACKED, len(most) + _PACKED, _PACKED)]
    masks = sum(max(table) for table in mask_weights)
    return np.array([*(least - masks - rest for rest in words), least], np.int32)


def learn_filter(
    normal: NormalTable, first: Ints, second: Ints, scores: Floats, same: Bools, temperature: float
) -> PairFilter | None:
    """Fit a filter of pairs; return None if it would not drop enough pairs.

    first, second, scores
        Candidate pairs of a table, and their scores.
    same
        Which of the pairs are known to be of one entity.
    temperature
        Calibration temperature: scores divided by it are log odds.
    """
    columns, masks = _forms_of(normal)
    floor = -_MATTERS * max(1.0, temperature)
    wanted = scores > floor
    if len(first) < _FEWEST or not wanted.any() or wanted.all() or not columns:
        return None
    signature = signatures(normal, columns, masks)
    one, two = np.ascontiguousarray(first, np.int32), np.ascontiguousarray(second, np.int32)
    levels = np.empty((len(one), len(columns) + len(masks)), np.uint8)
    pair_levels(signature.columns, signature.masks, one, two, levels)
    sizes = np.array([3] * len(columns) + [1 + SHARED] * len(masks))
    starts = np.cumsum(sizes) - sizes
    some = np.random.default_rng(0).permutation(len(one))[:_MOST]
    learned, judged = (
        some[::2],
        some[1::2],
    )  # thresholds hold on the held-out half too
    weights = _rounded(_log_odds(levels[learned] + starts, wanted[learned], int(sizes.sum())))
    sums = _sums(levels, weights, starts)
    least: list[int] = []
    for offset in range(_OFFSETS):
        enough = [_quantile(sums[half][scores[half] > floor + offset]) for half in (learned, judged)]
        least.append(max([min(enough), *least[-1:]]))
    kept = sums >= least[0]
    report = FilterReport(len(one), int(kept.sum()), int(same.sum()), int((same & ~kept).sum()))
    if report.kept > (1.0 - _SPARED) * report.pairs:
        return None
    tables = [
        tuple(weights[start : start + size].tolist()) for start, size in zip(starts, sizes, strict=True)
    ]
    count = len(columns)
    # the most decisive columns come first, so that most pairs are rejected after one word
    order = sorted(range(count), key=lambda place: min(tables[place]) - max(tables[place]))
    return PairFilter(
        tuple(columns[place] for place in order),
        masks,
        tuple(tables[place] for place in order),
        tuple(tables[count:]),
        tuple(least),
        report,
    )


def _forms_of(normal: NormalTable) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Return field and form of the columns (strings and numbers) and the masks (lists) of signatures."""
    columns: list[tuple[str, str]] = []
    masks: list[tuple[str, str]] = []
    for field in normal.values():
        for form, values in field.items():
            if not isinstance(values, Vectors | PairValues) and not values.missing.all():
                (masks if isinstance(values, Lists) else columns).append((field.name, form))
    return tuple(columns[:_COLUMNS]), tuple(masks[:_MASKS])


def _bytes_of(form: Form) -> NDArray[np.uint8]:
    """Return a byte for each row: 1 to 255 by the hash of its value, 0 where it is missing."""
    if isinstance(form, Numbers):
        words = split_mix_words((np.where(form.missing, 0.0, form.values) + 0.0).view(np.uint64))
        return np.where(form.missing, 0, words % np.uint64(255) + np.uint64(1)).astype(np.uint8)
    if not isinstance(form, Strings):
        raise InvalidArgumentError(f"a filter looks for strings, but the form is {type(form).__name__}.")
    words = split_mix_words(np.arange(len(form.values), dtype=np.uint64)) % np.uint64(255) + np.uint64(1)
    return np.append(words, np.uint64(0)).astype(np.uint8)[form.codes]


def _mask_of(form: Form) -> NDArray[np.uint64]:
    """Return a word for each row with a bit for each of its rarest items that other rows have too."""
    if not isinstance(form, Lists):
        raise InvalidArgumentError(f"a filter looks for lists, but the form is {type(form).__name__}.")
    counts = form.frequencies().counts
    kept = rarest(counts, form.codes, form.offsets, 0, _ITEMS)
    bit = split_mix_words(np.arange(len(form.values), dtype=np.uint64)) & np.uint64(63)
    words = np.uint64(1) << bit[form.codes[kept]]
    ends = np.cumsum(kept)
    offsets = np.append(0, ends)[form.offsets]
    found = np.zeros(len(form), np.uint64)
    filled = np.diff(offsets) > 0
    if filled.any():
        found[filled] = np.bitwise_or.reduceat(words, offsets[:-1][filled])
    return found


def _log_odds(places: NDArray[np.integer[Any]], wanted: Bools, size: int) -> Floats:
    """Fit a weight for each level of each column, by L2-penalized logistic regression (Newton steps)."""
    rows = np.repeat(np.arange(len(places)), places.shape[1])
    weights, bias = np.zeros(size), 0.0
    design = np.zeros((len(places), size), np.float32)
    design[rows, places.ravel()] = 1.0
    target = wanted.astype(np.float64)
    for _ in range(_NEWTON_STEPS):
        odds = np.clip(design @ weights.astype(np.float32) + bias, -_FARTHEST, _FARTHEST).astype(np.float64)
        chance = 1.0 / (1.0 + np.exp(-odds))
        curvature = (chance * (1.0 - chance)).astype(np.float32)
        wrong = target - chance
        gradient = np.append(design.T @ wrong.astype(np.float32) - _RIDGE * weights, wrong.sum())
        bent = design * curvature[:, None]
        hessian = np.zeros((size + 1, size + 1))
        hessian[:size, :size] = design.T @ bent
        hessian[:size, size] = hessian[size, :size] = bent.sum(axis=0)
        hessian[size, size] = curvature.sum()
        hessian[np.arange(size), np.arange(size)] += _RIDGE
        hessian[size, size] += 1e-3
        step = np.linalg.solve(hessian, gradient)
        weights, bias = weights + step[:size], bias + float(step[size])
        if np.abs(step).max() < 1e-3:
            break
    return weights


def _rounded(weights: Floats) -> NDArray[np.int64]:
    return np.clip(np.round(weights * _SCALE), -_LARGEST, _LARGEST).astype(np.int64)


def _sums(levels: NDArray[np.uint8], weights: NDArray[np.int64], starts: Ints) -> NDArray[np.int64]:
    total = np.zeros(len(levels), np.int64)
    for place, start in enumerate(starts):
        total += weights[start + levels[:, place].astype(np.int64)]
    return total


def _quantile(sums: NDArray[np.int64]) -> int:
    """Return the `_LOST` quantile of the sums, or a very low value if there are none."""
    return int(np.sort(sums)[int(_LOST * len(sums))]) if len(sums) else -_LARGEST
