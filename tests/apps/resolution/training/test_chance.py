"""Labels that were shuffled, or are of another table, are noticed; good ones and few ones are not."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import EntityResolver
from record_cases import people

PEOPLE = people(240)
PERSONS = np.array([record["person"] for record in PEOPLE])
TABLE = pa.Table.from_pylist(PEOPLE).drop_columns("person")


def warnings_with(labels):
    fitted = EntityResolver(n_jobs=1, steps=2, passes=1, rounds=2, context=False).fit(TABLE, labels, id="id")
    return fitted.knowledge_.training.get("warnings", [])


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffled_labels_are_reported(seed):
    (warning,) = warnings_with(np.random.default_rng(seed).permutation(PERSONS))
    assert "no more than chance" in warning


def test_good_labels_and_labels_with_some_mistakes_are_not():
    draws = np.random.default_rng(0)
    wrong = np.where(draws.random(len(PERSONS)) < 0.3, draws.permutation(PERSONS), PERSONS)
    assert warnings_with(PERSONS) == []
    assert warnings_with(wrong) == []
