"""The same figures as an independent scorer, the package scorch; run where it is installed."""

import numpy as np
import pytest

from factorwise.metrics.coreference import score_clusterings

scores = pytest.importorskip("scorch.scores")


def clusters_of(labels):
    return [set(np.flatnonzero(labels == name).tolist()) for name in np.unique(labels)]


def one_side(rng, n_items):
    kind = rng.integers(5)
    if kind == 0:
        return np.arange(n_items)
    if kind == 1:
        return np.zeros(n_items, dtype=np.int64)
    return rng.integers(0, max(1, n_items // int(kind)), n_items)


@pytest.mark.parametrize("largest", [4, 40])
def test_random_clusterings_get_the_figures_of_scorch(largest):
    rng = np.random.default_rng(largest)
    for _ in range(150):
        n_items = int(
            rng.integers(2, largest)
        )  # of a single item scorch says BLANC 1, the reference scorer 0
        truth, other = one_side(rng, n_items), one_side(rng, n_items)
        predicted = np.where(rng.random(n_items) < rng.choice([0.2, 1.0]), other, truth)
        key, response = clusters_of(truth), clusters_of(predicted)
        ours = score_clusterings(truth, predicted)
        for name in ("muc", "b_cubed", "ceaf_e", "ceaf_m"):
            recall, precision, f1 = getattr(scores, name)(key, response)
            assert getattr(ours, name) == pytest.approx((precision, recall, f1), abs=1e-12)
        recall, precision, f1 = scores.blanc(key, response, fast=False)
        assert ours.blanc == pytest.approx((precision, recall, f1), abs=1e-12)
        assert ours.conll == pytest.approx(scores.conll2012(key, response), abs=1e-12)
