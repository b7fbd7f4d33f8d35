"""What blocking loses, as probes see it."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.unlabelled.probes import probe_blocking


@pytest.fixture(scope="module")
def table():
    """Two records of each of 200 entities, alike in a word that no other has."""
    draws = np.random.default_rng(0)
    words = ["".join(draws.choice(list("abcdefghijklmnop"), 9)) for _ in range(200)]
    titles = [f"{word} {end}" for word in words for end in ("red", "blue")]
    return normalize(pa.table({"title": titles}), [FieldSpec("title", "text")])


def probed(table, found, sources=None):
    """Probe blocking that finds the pairs of some entities only, with a model that knows the truth."""
    first = 2 * np.flatnonzero(found)
    return probe_blocking(
        table,
        (first, first + 1),
        np.full(len(first), 30.0),
        lambda one, two: np.where(one // 2 == two // 2, 30.0, -30.0),
        np.where(np.repeat(found, 2), np.arange(400) // 2, 200 + np.arange(400)),
        sources,
        seed=0,
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_the_share_that_blocking_loses_is_seen(table, share):
    found = np.random.default_rng(1).random(200) >= share
    lost = probed(table, found)
    missed = 1.0 - found.mean()
    assert lost.pairs == pytest.approx(missed, abs=0.04)
    assert lost.recall == pytest.approx(1.0 - missed / 2.0, abs=0.03)  # a record of two alone has half


def test_pairs_within_a_source_that_has_entities_once_are_none(table):
    found = np.arange(200) < 100
    assert probed(table, found, np.zeros(400, int)).pairs == 0.0


def test_nothing_likely_tells_nothing(table):
    nothing = np.zeros(0, np.int64)
    odds = lambda one, two: np.full(len(one), -1.0)  # noqa: E731
    assert probe_blocking(table, (nothing, nothing), np.zeros(0), odds, np.arange(400), None, seed=0) is None
