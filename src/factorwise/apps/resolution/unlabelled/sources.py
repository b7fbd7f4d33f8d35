"""Infer the column with the source of each record, and whether each source lists an entity at most once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.normalize.word_sets import word_set
from factorwise.apps.resolution.schema.header_words import header_words
from factorwise.apps.resolution.unlabelled.anchors import CandidatePairs, share_context
from factorwise.apps.resolution.unlabelled.evidence import Evidence, add_up
from factorwise.apps.resolution.unlabelled.identity import TOP
from factorwise.apps.resolution.unlabelled.model import UnlabelledModel
from factorwise.apps.resolution.unlabelled.views import Views
from factorwise.inference.mcmc.shards.link_walk import MOST_SOURCES

WITHIN, FEW_INSIDE = 0.08, 0.05  # limits on matches inside a source: ratio to chance, share of records
WEAKEST = 0.5  # quantile of the sums S across sources below which pairs are ignored
WITHIN_VARIANTS = 0.7  # the limit of the ratio if matches inside a source may be variants
FEWEST = 10  # least number of near-equal pairs for a decision
AGAINST = -0.1  # evidence C below which the other columns contradict a match
RARE = (0.1, 0.5, 2.0)  # limits on namesakes; the first with enough pairs is used
_HEADERS = word_set("source src dataset origin provider shop catalog catalogue register database db")


def infer_source(table: pa.Table, hidden: Iterable[str]) -> str | None:
    """Return the column of sources, which has a header such as "source" and few values, or None."""
    skipped = set(hidden)
    for name in table.column_names:
        words = header_words(name)
        if name in skipped or not words or not words <= _HEADERS | {"name", "id", "file", "data"}:
            continue
        if words & _HEADERS and table.column(name).null_count == 0:
            count = len(table.column(name).unique())
            if 2 <= count <= min(MOST_SOURCES, max(2, table.num_rows // 10)):
                return str(name)
    return None


def number_sources(table: pa.Table, column: str) -> NDArray[np.int32]:
    """Return the source id of each record, from a column; missing values form one more source."""
    coded = table.column(column).combine_chunks().dictionary_encode()
    return np.asarray(coded.indices.fill_null(len(coded.dictionary)), np.int32)


def limits_of(
    model: UnlabelledModel | None, table: pa.Table, limits: Constraints | None
) -> Constraints | None:
    """Return the constraints, completed with the sources of a model without labels."""
    if model is None:
        return limits
    known = limits or Constraints()
    if known.sources is None and model.source is not None and model.source in table.column_names:
        known = replace(known, sources=number_sources(table, model.source))
    if model.one_per_source and known.sources is not None and known.sources.max(initial=0) < MOST_SOURCES:
        known = replace(known, one_per_source=True)
    return known


def is_one_per_source(
    views: Views,
    evidence: Evidence,
    pool: CandidatePairs,
    levels: NDArray[np.uint8],
    contexts: Sequence[int],
) -> bool:
    """Return whether each source lists an entity at most once: likely matches are rarely in one source.

    Likely matches have rare, equal or near-equal identities that other columns do not contradict. For each
    record it is checked whether it has such a match in its own source, and in another one.
    """
    sources = views.sources
    if sources is None:
        return False
    alike = (levels >= TOP - 1) & ~share_context(views, contexts, *pool)
    expected = views.identity.expected(*pool)
    near = next((rows for rare in RARE if (rows := alike & (expected <= rare)).sum() >= FEWEST), alike)
    one, two, equal = pool.first[near], pool.second[near], levels[near] == TOP
    sums = add_up(evidence.columns, views.witnesses, views.frequencies, one, two)
    agree = np.flatnonzero(evidence.calibration(sums) >= AGAINST)
    one, two, equal, sums = one[agree], two[agree], equal[agree], sums[agree]
    inside = sources[one] == sources[two]
    # a source that lists a thing twice repeats its name. If no source does, near-equal things within one may
    # be variants, which are as similar to each other across sources
    repeats = views.identity.is_person or int((equal & inside).sum()) >= FEWEST
    if not inside.all():  # different things with one name in a source are less similar than matches across
        kept = sums >= np.quantile(sums[~inside], WEAKEST)
        one, two, inside = one[kept], two[kept], inside[kept]
    sizes = np.bincount(sources) / len(sources)
    if len(one) < FEWEST:
        return len(sizes) == 2
    within, across = np.zeros((2, len(sources)), bool)
    for has, kept in ((within, inside), (across, ~inside)):
        has[one[kept]], has[two[kept]] = True, True
    if not across.any():
        return False
    # odds of a match inside the source rather than across, relative to the odds if sources did not matter
    by_chance = float((sizes**2).sum())
    ratio = (within.mean() / by_chance) / (across.mean() / max(1.0 - by_chance, 1e-9))
    few = len(sizes) == 2 and within.mean() < FEW_INSIDE and ratio < 1.5 * WITHIN
    return bool(ratio < (WITHIN if repeats else WITHIN_VARIANTS) or few)
