"""What clusters share, against the definition."""

import numpy as np
import pytest

from factorwise.kernels.clusterings.cluster_overlaps import cluster_overlaps
from reference import cluster_overlaps as plain


def rows_of(counts):
    """Counts by row, as the kernel takes them."""
    start = np.append(0, np.cumsum([len(row) for row in counts]))
    value = np.array([value for row in counts for value in sorted(row)], np.int32)
    count = np.array([row[value] for row in counts for value in sorted(row)], np.int32)
    return start, value, count


@pytest.mark.parametrize("inside", [False, True])
def test_overlaps_are_those_of_the_definition(inside):
    rng = np.random.default_rng(3)
    first = [
        {int(v): int(rng.integers(1, 4)) for v in rng.choice(6, rng.integers(0, 6), False)} for _ in range(20)
    ]
    second = [
        {int(v): int(rng.integers(1, 4)) for v in rng.choice(6, rng.integers(0, 6), False)} for _ in range(20)
    ]
    weight, base = rng.random(6), rng.dirichlet(np.ones(6))
    whole = [plain.merged(*two) for two in zip(first, second, strict=True)] if inside else second
    found, places = np.zeros((20, 4)), np.arange(20)
    cluster_overlaps(*rows_of(first), *rows_of(whole), weight, base, places, places, inside, True, found)
    without = np.zeros((20, 4))
    cluster_overlaps(*rows_of(first), *rows_of(whole), weight, base, places, places, inside, False, without)
    assert np.array_equal(without, np.where(np.arange(4) == 2, 0.0, found))
    for row, one, two in zip(found, first, second, strict=True):
        np.testing.assert_allclose(row[:3], plain.cluster_overlaps(one, two, weight, base), atol=1e-9)
        alone = sum(weight[value] for value in one if value not in two)
        assert row[3] == pytest.approx(alone if inside else 0.0)
