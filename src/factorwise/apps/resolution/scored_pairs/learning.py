"""Learn the constants of scored pairs from labels: known entities, or labelled pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.labelled import LabelledPairs, labelled_pairs
from factorwise.apps.resolution.linked_items import LinkedItems
from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.apps.resolution.scored_pairs.constants import (
    STRONGEST_UNLINKED,
    WEAKEST_UNLINKED,
    PairConstants,
)
from factorwise.apps.resolution.training.calibration import Case, calibrate
from factorwise.errors import DataFileError
from factorwise.io.listing import some
from factorwise.io.tables.ids import rows_of
from factorwise.io.tables.reading import read_table
from factorwise.kernels.compile.threads import Team
from factorwise.types import Floats, Ints

OFFSETS = (-4.0, -2.0, -1.0, 1.0, 2.0, 4.0)  # offsets that are tried in addition to the estimate
UNLINKED = (0.25, 0.5, 2.0, 4.0)  # unlinked pair weights to try, as multiples of the estimate
CHANCE = 1.0  # standard errors by which new constants must be better than the current ones

#: Clusters the records with given constants; returns the items and the result of the search.
Search = Callable[[PairConstants], tuple[LinkedItems, Any]]


class KnownLabels(NamedTuple):
    """Labels of the records.

    entity : int32[records]
        The entity of each record as a number, -1 where it is not known.
    judged
        Labelled pairs of records; None if there are none.
    """

    entity: NDArray[np.int32]
    judged: LabelledPairs | None = None


def read_labels(labels: Any, ids: pa.Array) -> KnownLabels:
    """Read labels from a table with the columns id and entity, or id, other and same.

    ids
        The ids of all records.
    """
    unknown = np.full(len(ids), -1, np.int32)
    table = read_table(labels)
    if {"id", "other", "same"} <= set(table.column_names):
        return KnownLabels(unknown, labelled_pairs(table.select(["id", "other", "same"]), ids))
    if not {"id", "entity"} <= set(table.column_names):
        raise DataFileError(
            "labels need the columns id and entity, or id, other and same, but have"
            f" {', '.join(map(repr, table.column_names))}."
        )
    table = table.drop_null()
    rows = rows_of(table.column("id"), ids)
    numbers = np.asarray(
        table.column("entity").combine_chunks().cast(pa.string()).dictionary_encode().indices, dtype=np.int32
    )
    known = rows >= 0
    if not known.any():
        raise DataFileError(
            f"no record has an id of the labels, such as {some(table.column('id')[:3].to_pylist())}; ids of"
            f" records are such as {some(ids[:3].to_pylist())}."
        )
    unknown[rows[known]] = numbers[known]
    return KnownLabels(unknown)


def learn_constants(
    search: Search,
    start: PairConstants,
    labels: KnownLabels,
    *,
    seed: int,
    team: Team,
    on_message: Callable[[str], object] = lambda text: None,
) -> PairConstants:
    """Return the constants that give the best clustering of the labelled records.

    The estimate is replaced only by constants that are better by more than chance would explain. If entities
    are known, the temperature and the odds of merges are fitted as well.

    search
        Clusters the records with given constants.
    start
        The estimate without labels.
    """
    tried: dict[tuple[float, float], tuple[Floats, LinkedItems]] = {}

    def measure(constants: PairConstants) -> tuple[Floats, LinkedItems]:
        key = (constants.offset, constants.unlinked)
        if key not in tried:
            linked, _ = search(constants)
            tried[key] = label_scores(labels, linked.rows_of_units(linked.walk.labels)), linked
            on_message(f"offset {key[0]:.2f}, unlinked {key[1]:.2f}: {np.mean(tried[key][0]):.4f}")
        return tried[key]

    best = start
    groups = _groups(labels)
    for _ in range(2):
        steps = [best._replace(offset=best.offset + step) for step in OFFSETS]
        best = _better(best, steps, measure, groups)
        weights = np.clip(np.multiply(UNLINKED, best.unlinked), STRONGEST_UNLINKED, WEAKEST_UNLINKED)
        best = _better(best, [best._replace(unlinked=float(weight)) for weight in weights], measure, groups)
    linked = measure(best)[1]
    changed = best[:2] != start[:2]
    count = int((labels.entity >= 0).sum()) if labels.judged is None else len(labels.judged.same)
    of = "labelled records" if labels.judged is None else "judged pairs"
    reason = f"{count:,} {of}" if changed else f"{start.reason}; {count:,} {of} prefer no other"
    if labels.judged is None:
        truth = np.full(linked.walk.n_items, -1, np.int32)
        truth[linked.unit] = labels.entity
        calibration = calibrate([Case(linked.walk, truth)], seed=seed, team=team)
        best = best._replace(
            temperature=calibration.temperature,
            merges=calibration.merges,
            calibration=describe_calibration(calibration.as_dict()),
        )
    return best._replace(reason=reason)


def label_scores(labels: KnownLabels, clusters: Ints) -> NDArray[np.float64]:
    """Return a score from 0 to 1 for the clustering of each labelled record or labelled pair.

    The score of a record is the harmonic mean of its B-cubed precision and recall among labelled records. The
    score of a pair is whether it is right; matches and non-matches have the same total weight.
    """
    if labels.judged is not None:
        first, second, same = labels.judged
        right = (clusters[first] == clusters[second]) == same
        positive = int(same.sum())
        if not 0 < positive < len(same):
            return np.asarray(right, np.float64)
        weight = np.where(same, 0.5 / positive, 0.5 / (len(same) - positive))
        return np.asarray(right * weight * len(same), np.float64)
    rows = np.flatnonzero(labels.entity >= 0)
    entity = np.unique(labels.entity[rows], return_inverse=True)[1]
    cluster = np.unique(clusters[rows], return_inverse=True)[1]
    cell = np.unique(entity.astype(np.int64) * len(rows) + cluster, return_inverse=True)[1]
    shared = np.bincount(cell)[cell]
    return 2.0 * shared / (np.bincount(entity)[entity] + np.bincount(cluster)[cluster])


def _groups(labels: KnownLabels) -> NDArray[np.int64]:
    """Return the group of each score; scores of one entity are not independent."""
    if labels.judged is not None:
        return np.arange(len(labels.judged.same))
    return np.unique(labels.entity[labels.entity >= 0], return_inverse=True)[1]


def _better(
    best: PairConstants,
    others: list[PairConstants],
    measure: Callable[[PairConstants], tuple[Floats, LinkedItems]],
    groups: Ints,
) -> PairConstants:
    """Return the best of the others if it beats ``best`` by more than chance, else ``best``."""
    other = max(others, key=lambda constants: float(np.mean(measure(constants)[0])))
    gain = measure(other)[0] - measure(best)[0]
    spread = float(np.sqrt(np.sum(np.bincount(groups, weights=gain - gain.mean()) ** 2))) / len(gain)
    return other if gain.mean() > CHANCE * spread else best
