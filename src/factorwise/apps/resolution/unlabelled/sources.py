"""Where records are from: a column that says so, and whether each source has an entity once."""

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

WITHIN, FEW_INSIDE = 0.08, 0.05  # of chance, and of the records: partners inside a source
WEAKEST = 0.5  # share of the pairs across sources that are less alike than what counts inside a source
WITHIN_VARIANTS = 0.7
FEWEST = 10  # near-equal pairs, below which nothing is seen
AGAINST = -0.1  # evidence C of other columns, below which they speak against a pair
RARE = (0.1, 0.5, 2.0)  # namesakes, the first that will do
_HEADERS = word_set("source src dataset origin provider shop catalog catalogue register database db")


def infer_source(table: pa.Table, hidden: Iterable[str]) -> str | None:
    """Return the column that says where records are from: its header says so, and it has few values."""
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
    """Number the sources of records by a column; a missing value is a source of its own."""
    coded = table.column(column).combine_chunks().dictionary_encode()
    return np.asarray(coded.indices.fill_null(len(coded.dictionary)), np.int32)


def limits_of(
    model: UnlabelledModel | None, table: pa.Table, limits: Constraints | None
) -> Constraints | None:
    """Return constraints with what a model without labels knows of sources."""
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
    """Return whether each source has an entity once: pairs that look like one hardly lie in one source.

    They look like one if their identities are rare and all but equal and other columns do not speak against
    it. Looked at from each record: does it have such a partner in its own source, and in another one?
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
    # a source that has a thing twice repeats its name: if none does, things in it that are all but equal may
    # be variants, which are as near to each other across sources
    repeats = views.identity.is_person or int((equal & inside).sum()) >= FEWEST
    if not inside.all():  # two things of one name in one source are less alike than one thing in two
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
    # odds of a partner inside against one elsewhere, relative to those if sources did not matter
    by_chance = float((sizes**2).sum())
    ratio = (within.mean() / by_chance) / (across.mean() / max(1.0 - by_chance, 1e-9))
    few = len(sizes) == 2 and within.mean() < FEW_INSIDE and ratio < 1.5 * WITHIN
    return bool(ratio < (WITHIN if repeats else WITHIN_VARIANTS) or few)
