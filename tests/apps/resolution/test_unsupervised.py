"""Mixtures of pairs of one entity and of two, and the weights they give."""

import numpy as np
import pytest

from factorwise.apps.resolution.comparisons import Comparison, Cuts
from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs
from factorwise.apps.resolution.unsupervised import APART, SMOOTHING, field_powers, fit_mixture, model_of

SIZES = (3, 2, 4)
SAME = [np.array(row) for row in ([0.05, 0.15, 0.8], [0.1, 0.9], [0.05, 0.05, 0.2, 0.7])]
OTHER = [np.array(row) for row in ([0.8, 0.15, 0.05], [0.7, 0.3], [0.6, 0.2, 0.1, 0.1])]
SHARE = 0.2


def comparisons(fields="abc", sizes=SIZES):
    return [Comparison(f, "text", "rarity", Cuts((), s)) for f, s in zip(fields, sizes, strict=True)]


def drawn(seed, n, share=SHARE, missing=0.1):
    """Levels of pairs of which a share is of one entity, each missing by chance; and which are."""
    rng = np.random.default_rng(seed)
    same = rng.random(n) < share
    columns = []
    for alike, other in zip(SAME, OTHER, strict=True):
        level = np.where(same, *(1 + rng.choice(len(row), n, p=row) for row in (alike, other)))
        columns.append(np.where(rng.random(n) < missing, 0, level))
    return np.stack(columns, axis=1).astype(np.uint8), same


def labels_of(levels, same):
    rows = np.arange(len(levels))
    return ComparedLabels(LabelledPairs(rows, rows, same), levels)


def test_a_planted_mixture_is_found(seed):
    levels, same = drawn(seed, 60_000)
    found = fit_mixture(levels, drawn(seed + 1, 20_000, share=0.0)[0], comparisons())
    assert found.share == pytest.approx(same.mean(), abs=0.02)
    for got, true in zip([*found.same, *found.other], [*SAME, *OTHER], strict=True):
        np.testing.assert_allclose(got, true, atol=0.03)


def test_weights_are_logs_of_ratios_and_a_missing_value_has_none():
    levels, _ = drawn(1, 5_000)
    found = fit_mixture(levels, drawn(2, 2_000, share=0.0)[0], comparisons())
    model = model_of(found, comparisons())
    assert model.link == pytest.approx(np.log(found.share / (1.0 - found.share)))
    assert (model.apart, model.cluster) == (APART, 0.0)
    for table, alike, other in zip(model.tables(), found.same, found.other, strict=True):
        assert table[0] == 0.0
        np.testing.assert_allclose(table[1:], np.log(alike / other))


def test_comparisons_of_one_field_share_what_it_says():
    assert field_powers(comparisons("aab")) == pytest.approx([0.5**0.5, 0.5**0.5, 1.0])
    levels, _ = drawn(1, 5_000)
    found = fit_mixture(levels, drawn(2, 2_000, share=0.0)[0], comparisons("aab"))
    tables = model_of(found, comparisons("aab")).tables()
    np.testing.assert_allclose(tables[0][1:], 0.5**0.5 * np.log(found.same[0] / found.other[0]))
    np.testing.assert_allclose(tables[2][1:], np.log(found.same[2] / found.other[2]))


def test_pairs_that_say_nothing_change_no_frequency():
    levels, _ = drawn(1, 20_000, missing=0.0)
    random = drawn(2, 2_000, share=0.0)[0]
    silent = np.zeros((3_000, 3), np.uint8)
    plain = model_of(fit_mixture(levels, random, comparisons()), comparisons())
    padded = model_of(fit_mixture(np.concatenate([levels, silent]), random, comparisons()), comparisons())
    np.testing.assert_allclose(padded.weights[3:], plain.weights[3:], atol=0.05)


def test_labelled_pairs_settle_what_looks_cannot(seed):
    """Nothing but labels tells which part is which where random pairs look like those of one entity."""
    levels, same = drawn(seed, 4_000, share=0.5)
    misleading = drawn(seed + 1, 4_000, share=1.0)[0]
    blind = fit_mixture(levels, misleading, comparisons())
    assert blind.same[0][2] < blind.other[0][2]
    led = fit_mixture(levels, misleading, comparisons(), labels_of(levels[:200], same[:200]))
    for got, true in zip([*led.same, *led.other], [*SAME, *OTHER], strict=True):
        np.testing.assert_allclose(got, true, atol=0.08)


def test_labels_say_what_the_parts_look_like_but_not_how_large_they_are():
    levels, same = drawn(3, 20_000)
    random = drawn(4, 5_000, share=0.0)[0]
    only_same = labels_of(*drawn(5, 300, share=1.0))
    found = fit_mixture(levels, random, comparisons(), only_same)
    assert found.share == pytest.approx(same.mean(), abs=0.03)


def test_labels_alone_give_their_own_frequencies():
    none = np.zeros((0, 1), np.uint8)
    levels = np.array([[2], [2], [1], [1], [1]], np.uint8)
    labels = labels_of(levels, np.array([True, True, False, False, True]))
    found = fit_mixture(none, none, comparisons("a", (2,)), labels)
    assert found.share == 0.5
    weight = 100.0
    same = np.array([weight, 2 * weight]) + SMOOTHING
    other = np.array([2 * weight, 0.0]) + SMOOTHING
    np.testing.assert_allclose(found.same[0], same / same.sum())
    np.testing.assert_allclose(found.other[0], other / other.sum())


def test_without_candidates_or_comparisons_there_is_a_model_all_the_same():
    for width in (0, 2):
        one = comparisons("ab"[:width], (2, 3)[:width])
        none = np.zeros((0, width), np.uint8)
        model = model_of(fit_mixture(none, none, one), one)
        assert not model.weights[2:].any()
    alike = np.zeros((4, 0), np.uint8)
    assert fit_mixture(alike, alike, []).share == pytest.approx(0.5)
