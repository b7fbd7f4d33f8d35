"""Read a model file of splink, which holds its settings as JSON, to interpret the pairs that it scored.

Comparison levels of splink are SQL conditions with m and u probabilities. They cannot become comparisons of
this library without running SQL, so the conditions are not used. Used are the names of columns, the link
type, the expected number of matches, and m and u, which give match weights to pairs that splink has written
with levels but without a score.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.scored_pairs.tables import SPLINK_SCORES
from factorwise.errors import DataFileError

LARGEST_FILE = 64 << 20  # bytes
_NO_WEIGHTS: Mapping[str, tuple[float, ...]] = MappingProxyType({})


class SplinkModel(NamedTuple):
    """The settings that are used from a model file of splink.

    match_probability
        The probability that two records drawn at random match, splink's prior.
    id_column, source_column
        The columns of the records that hold the ids and the sources.
    links_only
        Whether only records of different sources are compared.
    level_weights
        The match weight, in bits, of each level from 0 on, by the column in which splink writes the level of
        a comparison. A missing value is level -1 and has weight 0.
    """

    match_probability: float
    id_column: str
    source_column: str
    links_only: bool
    level_weights: Mapping[str, tuple[float, ...]] = _NO_WEIGHTS

    def weigh(self, pairs: pa.Table) -> pa.Table:
        """Return pairs with match weights, which are computed from m and u if there is no score.

        Term frequency adjustments are not included.
        """
        levels = [name for name in self.level_weights if name in pairs.column_names]
        if not levels or set(SPLINK_SCORES) & set(pairs.column_names):
            return pairs
        missing = sorted(set(self.level_weights) - set(levels))
        if missing:
            raise DataFileError(
                f"the pairs have no score and no levels of {', '.join(map(repr, missing))}, which the splink"
                " model compares: write all columns of its comparison levels, or the match weight."
            )
        odds = (
            self.match_probability / (1.0 - self.match_probability) if self.match_probability < 1.0 else 1.0
        )
        total = np.full(pairs.num_rows, math.log2(max(odds, 1e-300)))
        for name in levels:
            weights = self.level_weights[name]
            level = np.asarray(pairs.column(name).cast(pa.int64()).fill_null(-1), np.int64)
            if level.min(initial=0) < -1 or level.max(initial=0) >= len(weights):
                raise DataFileError(
                    f"column {name!r} of the pairs has levels from {level.min()} to {level.max()}, but the"
                    f" splink model has levels 0 to {len(weights) - 1}. Give the model that scored the pairs."
                )
            total += np.append(weights, 0.0)[level]
        return pairs.append_column(SPLINK_SCORES[0], pa.array(total))

    def expected_pairs(self, n_records: int) -> float:
        """Return the number of matches that the model expects among ``n_records`` records."""
        return self.match_probability * n_records * (n_records - 1) / 2.0


def read_splink_model(path: str | os.PathLike[str]) -> SplinkModel:
    """Read a model file that splink's ``save_model_to_json`` wrote."""
    name = os.fspath(path)
    file = Path(path)
    if not file.is_file():
        raise DataFileError(f"{name}: there is no such file. Give the JSON file that splink saved.")
    if file.stat().st_size > LARGEST_FILE:
        raise DataFileError(f"{name}: is too large for a model file of splink. Give the JSON file it saved.")
    try:
        content: Any = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{name}: is not JSON ({error}). Give the file that splink saved.") from error
    settings: dict[str, Any] = content if isinstance(content, dict) else {}
    probability: Any = settings.get("probability_two_random_records_match")
    number = isinstance(probability, int | float) and not isinstance(probability, bool)
    if not number or not 0.0 <= probability <= 1.0:
        raise DataFileError(
            f"{name}: has no 'probability_two_random_records_match' from 0 to 1, so it is no model file of"
            " splink. Give the file that save_model_to_json wrote."
        )
    return SplinkModel(
        float(probability),
        str(settings.get("unique_id_column_name") or "unique_id"),
        str(settings.get("source_dataset_column_name") or "source_dataset"),
        settings.get("link_type") == "link_only",
        _level_weights(settings, name),
    )


def _level_weights(settings: Mapping[str, Any], file: str) -> dict[str, tuple[float, ...]]:
    """Return the match weights of the levels of each comparison, the least similar level first."""
    found = {}
    prefix = str(settings.get("comparison_vector_value_column_prefix") or "gamma_")
    comparisons = settings.get("comparisons")
    for comparison in comparisons if isinstance(comparisons, list) else []:
        try:
            levels = [one for one in comparison["comparison_levels"] if not one.get("is_null_level")]
            weights = [_weight(one.get("m_probability"), one.get("u_probability")) for one in levels]
            found[prefix + str(comparison["output_column_name"])] = tuple(reversed(weights))
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise DataFileError(
                f"{file}: has a comparison whose levels cannot be read ({error!r}). Give the file that"
                " save_model_to_json wrote."
            ) from error
    return found


def _weight(m: Any, u: Any) -> float:
    """Return log2(m / u), or 0 for a level that splink has not trained."""
    if m is None or u is None:
        return 0.0
    m, u = float(m), float(u)
    if not (0.0 <= m <= 1.0 and 0.0 <= u <= 1.0):
        raise ValueError(f"m {m} and u {u} are no probabilities")
    return math.log2(max(m, 1e-12)) - math.log2(max(u, 1e-12))
