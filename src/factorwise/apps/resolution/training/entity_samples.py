"""Sample whole entities from large labelled tables, so that the cost of learning is bounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.rng import split_mix_words
from factorwise.types import Ints

MOST_RECORDS = 200_000  # about the largest number of records that a model is fitted on


def sample_entities(entity: Ints, seed: int) -> NDArray[np.int64] | None:
    """Return the rows of a sample of whole entities, ascending; None if there are few records.

    entity
        The entity of each record; -1 where it is not known. The same share of such records is kept.
    """
    if len(entity) <= MOST_RECORDS:
        return None
    share = MOST_RECORDS / len(entity)
    row = np.arange(len(entity), dtype=np.uint64)
    key = np.where(entity < 0, row, np.asarray(entity, np.int64).astype(np.uint64) + np.uint64(2**32))
    drawn = split_mix_words(split_mix_words(key) ^ np.uint64(seed % 2**64)) >> np.uint64(11)
    return np.flatnonzero(drawn < np.uint64(int(share * 2**53)))
