"""What a model file of splink, its settings as JSON, says of the pairs that it scored.

Comparison levels of splink are conditions in SQL with their m and u. They cannot become comparisons of this
library without running them, so they stay with splink: what is taken over is what the columns are called, the
kind of linkage, and how many pairs the model expects to match.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from factorwise.errors import DataFileError

LARGEST_FILE = 64 << 20  # bytes


class SplinkModel(NamedTuple):
    """What is taken over from a model file of splink.

    match_probability
        The probability that two records drawn at random match, splink's prior.
    id_column, source_column
        The columns of the records with the ids, and with the sources.
    links_only
        Whether only records of different sources are compared.
    """

    match_probability: float
    id_column: str
    source_column: str
    links_only: bool

    def expected_pairs(self, n_records: int) -> float:
        """Return how many pairs of so many records the model expects to match."""
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
    )
