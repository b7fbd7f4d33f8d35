"""Evidence of the other columns for a pair: the sum S of match weights, and the calibrated evidence C(S).

S adds the match weight log m/u of each column's comparison level; m is the level's frequency among anchors
(pairs with the same rare identity), u among null pairs (whose identities conflict). Columns are not
independent, so S is calibrated: C(S) is the log ratio of the frequencies of a *sum* among anchors and null
pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.unlabelled.witnesses import ValueWitness
from factorwise.errors import InvalidArgumentError
from factorwise.types import Floats, Ints
from factorwise.validation import as_number, is_rising

LEAST, MOST = -5.0, 14.0  # bounds of the match weight of one column
LEVELS = 7  # comparison levels of identities; level 0 means that one is missing
BINS = 20  # most bins of S in the calibration
SUPPORT = 5  # least number of null pairs in the last bin; C is extrapolated linearly beyond it
SLOPE = 0.7  # slope of C beyond its knots
_CHUNK = 1 << 18
_SMOOTHING = 2.0  # pseudo-pairs added to the anchors, and spread over all bins of S


@dataclass(frozen=True, slots=True, eq=False)
class ColumnEvidence:
    """The match weights log m/u of a column's levels, including level 0; log m alone for the top level.

    Equal values add log m of the top level, less the log frequency of the value among identities.

    edges
        Thresholds of the levels, if they depend on the training table.
    factor
        Factor of the column's match weights, chosen by the user.
    """

    name: str
    weights: NDArray[np.float64]
    edges: tuple[float, ...] = ()
    factor: float = 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for the model file."""
        edges = {"edges": list(self.edges)} if self.edges else {}
        factor = {} if self.factor == 1.0 else {"factor": self.factor}
        return {"name": self.name, "weights": self.weights.tolist(), **edges, **factor}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ColumnEvidence:
        """Rebuild the object from the values that `as_dict` returned."""
        edges = tuple(as_number("edges", edge) for edge in content.get("edges", ()))
        if list(edges) != sorted(edges):
            raise InvalidArgumentError(f"its edges must ascend, but are {edges}")
        factor = as_number("factor", content.get("factor", 1.0))
        return cls(str(content["name"]), np.asarray(content["weights"], np.float64), edges, factor)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCurve:
    """The calibration curve C(S): piecewise linear between knots, with a fixed slope beyond them."""

    sums: NDArray[np.float64]
    values: NDArray[np.float64]

    def __call__(self, sums: Floats) -> NDArray[np.float64]:
        """Return the calibrated evidence C of each sum S."""
        if not len(self.sums):
            return np.zeros(len(sums))
        low, high = self.sums[0], self.sums[-1]
        inside = np.interp(sums, self.sums, self.values)
        return np.asarray(inside + SLOPE * (np.minimum(sums - low, 0.0) + np.maximum(sums - high, 0.0)))

    def as_dict(self) -> dict[str, list[float]]:
        """Return plain values for the model file."""
        return {"sums": self.sums.tolist(), "values": self.values.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ScoreCurve:
        """Rebuild the object from the values that `as_dict` returned."""
        sums, values = (np.asarray(content[name], np.float64) for name in ("sums", "values"))
        finite = np.isfinite(sums).all() and np.isfinite(values).all()
        if not finite or sums.shape != values.shape or not is_rising(sums, strictly=True):
            raise InvalidArgumentError("its evidence has knots that are not numbers in order")
        return cls(sums, values)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Evidence of all columns other than the identity.

    columns, calibration
        The match weights of the columns, and the calibration curve of their sum.
    related, related_share
        The calibration curve against related pairs (non-matching pairs that share much, such as members of a
        household), and for each level of the identity the share of related pairs among non-matching pairs.
    """

    columns: tuple[ColumnEvidence, ...]
    calibration: ScoreCurve
    related: ScoreCurve = field(default_factory=lambda: ScoreCurve(np.zeros(0), np.zeros(0)))
    related_share: NDArray[np.float64] = field(default_factory=lambda: np.zeros(LEVELS))

    def worth(self, sums: Floats, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return C of pairs, given their sums S and the comparison levels of their identities."""
        found, share = self.calibration(sums), self.related_share[levels]
        some = np.flatnonzero(share > 0.0)
        share, plain = share[some], found[some]
        found[some] -= np.logaddexp(np.log1p(-share), np.log(share) + plain - self.related(sums[some]))
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for the model file."""
        return {
            "columns": [one.as_dict() for one in self.columns],
            **self.calibration.as_dict(),
            "related": {"share": self.related_share.tolist(), **self.related.as_dict()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Evidence:
        """Rebuild the object from the values that `as_dict` returned."""
        columns = tuple(ColumnEvidence.from_dict(one) for one in content["columns"])
        if not all(np.isfinite(one.weights).all() for one in columns):
            raise InvalidArgumentError("its evidence has weights that are not finite numbers")
        calibration = ScoreCurve.from_dict(content)
        if "related" not in content:  # a model of an earlier version
            return cls(columns, calibration)
        related, share = content["related"], np.asarray(content["related"]["share"], np.float64)
        if share.shape != (LEVELS,) or not ((share >= 0.0) & (share < 1.0)).all():
            raise InvalidArgumentError(f"its shares of related pairs are not {LEVELS} numbers from 0 to 1")
        return cls(columns, calibration, ScoreCurve.from_dict(related), share)


class WitnessFrequencies:
    """Log frequency of each value of a column among distinct identities."""

    def __init__(self, witness: ValueWitness, identity: NDArray[np.int64]) -> None:
        known = (witness.code >= 0) & (identity >= 0)
        width = int(identity.max(initial=0)) + 1
        pairs = np.unique(witness.code[known] * width + identity[known])
        counts = np.bincount(pairs // width, minlength=int(witness.code.max(initial=-1)) + 1)
        total = max(len(pairs), 1)
        self.logs = np.log(np.maximum(counts, 1) / total)


def add_up(
    columns: Sequence[ColumnEvidence],
    witnesses: Sequence[ValueWitness],
    frequencies: Sequence[WitnessFrequencies],
    first: Ints,
    second: Ints,
) -> NDArray[np.float64]:
    """Return the sum S of match weights for pairs of rows."""
    total = np.zeros(len(first))
    for low in range(0, len(first), _CHUNK):
        part = slice(low, low + _CHUNK)
        one, two = first[part], second[part]
        for column, witness, frequency in zip(columns, witnesses, frequencies, strict=True):
            total[part] += weigh(column, witness, frequency, witness.levels(one, two), one)
    return total


def weigh(
    column: ColumnEvidence,
    witness: ValueWitness,
    frequency: WitnessFrequencies,
    levels: NDArray[np.uint8],
    rows: Ints,
) -> NDArray[np.float64]:
    """Return the match weights of one column for pairs with these levels; ``rows`` are the first rows."""
    found = column.weights[levels]
    equal = np.flatnonzero(levels == witness.top)
    found[equal] -= frequency.logs[witness.code[rows[equal]]]
    if witness.top > 1:
        found[equal] = np.maximum(found[equal], column.weights[witness.top - 1])
    return np.asarray(column.factor * np.clip(found, LEAST, MOST))


def fit_column(
    witness: ValueWitness, anchors: NDArray[np.uint8], weight: Floats, null: NDArray[np.uint8]
) -> ColumnEvidence:
    """Estimate the match weights of a column from the levels of anchors and of null pairs."""
    size = witness.top + 1
    u = np.bincount(null, minlength=size)[1:] + 0.5
    if witness.background:
        u = np.asarray(witness.background) * len(null) + 1e-3
    u = u / u.sum()
    m = np.bincount(anchors, weights=weight, minlength=size)[1:] + _SMOOTHING * u
    seen = float(m.sum())
    m = m / m.sum()
    logs = np.log(m / u)
    logs[:-1] = _rising(logs[:-1], m[:-1] + u[:-1])
    logs[-1] = np.log(m[-1])
    shrink = seen / (seen + 10.0)
    logs[:-1] *= shrink
    return ColumnEvidence(witness.name, np.append(0.0, logs), witness.edges, witness.factor)


def calibrate(anchors: Floats, weight: Floats, null: Floats) -> ScoreCurve:
    """Fit the calibration curve C to the sums S of anchors and of null pairs."""
    if len(anchors) < 2 or len(null) < 2:
        return ScoreCurve(np.zeros(0), np.zeros(0))
    ranks = np.linspace(0.0, 1.0, BINS // 2 + 1)[1:-1]
    edges = np.unique(np.concatenate([np.quantile(anchors, ranks), np.quantile(null, ranks)]).round(6))
    bin_a, bin_n = np.searchsorted(edges, anchors), np.searchsorted(edges, null)
    size = len(edges) + 1
    in_a, in_n = np.bincount(bin_a, weights=weight, minlength=size), np.bincount(bin_n, minlength=size)
    center = np.bincount(bin_a, weights=weight * anchors, minlength=size) + np.bincount(
        bin_n, weights=null, minlength=size
    )
    center = center / np.maximum(in_a + in_n, 1e-9)
    ratio = _log_shares(in_a) - _log_shares(in_n)
    kept = in_a + in_n > 0
    center, ratio, in_n, mass = (
        center[kept],
        ratio[kept],
        in_n[kept],
        (in_a / in_a.sum() + in_n / in_n.sum())[kept],
    )
    ratio = np.asarray(_rising(ratio, mass), np.float64)
    supported = np.flatnonzero(in_n >= SUPPORT)
    last = int(supported[-1]) + 1 if len(supported) else len(center)
    center, ratio = center[:last], ratio[:last]
    keep = np.append(True, np.diff(center) > 1e-9)
    return ScoreCurve(center[keep], ratio[keep])


def _log_shares(counts: Floats | Ints) -> NDArray[np.float64]:
    """Return the logs of smoothed shares, which are finite for empty bins too."""
    smooth = np.asarray(counts, np.float64) + _SMOOTHING / len(counts)
    return np.asarray(np.log(smooth / smooth.sum()), np.float64)


def _rising(values: Floats, mass: Floats) -> Floats:
    """Return the isotonic (never falling) regression of the values, weighted by mass."""
    from sklearn.isotonic import isotonic_regression  # here, so that applying a model does not load it

    return np.asarray(isotonic_regression(values, sample_weight=mass))
