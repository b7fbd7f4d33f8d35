"""The report of ``factorwise cluster``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from factorwise.cli.report_sections import Page, facts_of, run_facts, write_page
from factorwise.cli.resolve.report import pairs_with_steps, result_sections
from factorwise.types import Ints

if TYPE_CHECKING:  # numba takes its time to load
    from factorwise.apps.resolution.results.answers import Resolution
    from factorwise.apps.resolution.scored_pairs.constants import PairConstants
    from factorwise.apps.resolution.scored_pairs.tables import ScoredPairs
    from factorwise.inference.mcmc.shards.search import SearchProgress

Steps = list[list[tuple[str, float]]]


def write_cluster_report(
    page: Page,
    document: Mapping[str, Any],
    table: pa.Table,
    found: Resolution,
    scored: ScoredPairs,
    constants: PairConstants,
    rounds: Sequence[SearchProgress],
    *,
    values: bool,
) -> dict[str, Any]:
    """Write the entities and uncertain pairs to a page, and return its entry in the summary.

    table
        What the records say, without their ids; no columns where that is not known.
    """

    def steps_of(one: Ints, two: Ints) -> Steps:
        low, high = np.minimum(one, two), np.maximum(one, two)
        key = scored.first * scored.n_records + scored.second
        wanted = low * scored.n_records + high
        place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        scores = np.where(key[place] == wanted, scored.log_odds[place], 0.0).tolist()
        return [[("score of the pair", score), ("offset", constants.offset)] for score in scores]

    facts = [
        ("scored pairs", document["scored_pairs"]),
        ("uncertain pairs, 1 to 99 %", document["uncertain_pairs"]),
    ]
    about = [facts_of("Constants", document["constants"], "In natural logarithms of odds.")]
    sections = result_sections(facts, about, table, found, rounds, values=values)
    if found.posterior is not None:
        sections.append(pairs_with_steps(table, found, steps_of, constants.temperature, values=values))
    sections.append(run_facts(page, document, {"pairs": ", ".join(document["columns"])}))
    return write_page(page, f"Entities of {document['output']}", "factorwise cluster", sections)
