"""Mixtures of pairs of one entity and of two, and the weights they give."""

import numpy as np
import pytest

from factorwise.apps.resolution.comparisons import Comparison, Cuts
from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs
from factorwise.apps.resolution.unlabelled import unsupervised
from factorwise.apps.resolution.unlabelled.unsupervised import (
    LABELLED,
    SHARED,
    SHARES,
    SMOOTHING,
    UNLINKED,
    different_rows,
    field_powers,
    fit_mixture,
    surprise,
    weights_of,
)

SIZES = (3, 2, 4)
SAME = [np.array(row) for row in ([0.05, 0.15, 0.8], [0.1, 0.9], [0.05, 0.05, 0.2, 0.7])]
OTHER = [np.array(row) for row in ([0.8, 0.15, 0.05], [0.7, 0.3], [0.6, 0.2, 0.1, 0.1])]
SHARE = 0.2


def comparisons(fields="abc", sizes=SIZES, measure="rarity"):
    return [Comparison(f, "text", measure, Cuts((), s)) for f, s in zip(fields, sizes, strict=True)]


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


@pytest.fixture
def to_the_end(monkeypatch):
    monkeypatch.setattr(unsupervised, "ROUNDS", 500)


@pytest.mark.usefixtures("to_the_end")
def test_a_planted_mixture_is_found(seed):
    levels, same = drawn(seed, 60_000)
    found = fit_mixture(levels, drawn(seed + 1, 20_000, share=0.0)[0], comparisons(), expected=2_000)
    assert found.share == pytest.approx(same.mean(), abs=0.02)
    for got, true in zip([*found.same, *found.other], [*SAME, *OTHER], strict=True):
        np.testing.assert_allclose(got, true, atol=0.03)


def test_weights_are_logs_of_ratios_and_a_missing_value_has_none():
    levels, _ = drawn(1, 5_000)
    found = fit_mixture(levels, drawn(2, 2_000, share=0.0)[0], comparisons(), expected=500)
    model = weights_of(found, comparisons())
    assert model.link == pytest.approx(np.log(found.share / (1.0 - found.share)))
    assert (model.unlinked, model.cluster) == (UNLINKED, 0.0)
    for table, alike, other in zip(model.tables(), found.same, found.other, strict=True):
        assert table[0] == 0.0
        np.testing.assert_allclose(table[1:], np.log(alike / other))


def test_comparisons_of_one_field_share_what_it_says():
    assert field_powers(comparisons("aab")) == pytest.approx([0.5**SHARED, 0.5**SHARED, 1.0])
    levels, _ = drawn(1, 5_000)
    found = fit_mixture(levels, drawn(2, 2_000, share=0.0)[0], comparisons("aab"), expected=500)
    tables = weights_of(found, comparisons("aab")).tables()
    np.testing.assert_allclose(tables[0][1:], 0.5**SHARED * np.log(found.same[0] / found.other[0]))
    np.testing.assert_allclose(tables[2][1:], np.log(found.same[2] / found.other[2]))


@pytest.mark.usefixtures("to_the_end")
def test_pairs_that_say_nothing_change_no_frequency():
    levels, _ = drawn(1, 20_000, missing=0.0)
    random = drawn(2, 2_000, share=0.0)[0]
    silent = np.zeros((3_000, 3), np.uint8)
    plain, padded = (
        weights_of(fit_mixture(given, random, comparisons(), expected=2_000), comparisons())
        for given in (levels, np.concatenate([levels, silent]))
    )
    np.testing.assert_allclose(padded.values[3:], plain.values[3:], atol=0.05)


def test_weights_never_fall_where_pairs_become_more_alike():
    """The second comparison speaks against itself: what is more alike there is less often the same."""
    rng = np.random.default_rng(1)
    levels, same = drawn(1, 20_000)
    levels[:, 1] = 1 + (rng.random(len(same)) < np.where(same, 0.1, 0.6))
    random = drawn(2, 5_000, share=0.0)[0]
    for measure, sign in (("rarity", 1), ("distance", -1)):
        given = comparisons(measure=measure)
        turned = [
            one if sign > 0 else np.where(one, np.array(SIZES) + 1 - one, 0) for one in (levels, random)
        ]
        found = fit_mixture(*(one.astype(np.uint8) for one in turned), given, expected=2_000)
        assert all((sign * np.diff(table) >= 0.0).all() for table in found.weights)
        assert abs(np.diff(found.weights[1])[0]) < 1e-9
        assert abs(found.weights[0][2] - found.weights[0][0]) > 2.0


def test_blocking_does_not_pass_for_belonging_together(seed):
    """Half of the candidates share the first value because one rule asks for it, half the second."""
    levels, same = drawn(seed, 40_000, share=0.02, missing=0.0)
    rule = np.random.default_rng(seed).random(len(same)) < 0.5
    levels[rule, 0] = 3
    levels[~rule, 2] = 4
    found = fit_mixture(levels, drawn(seed + 1, 20_000, share=0.0)[0], comparisons(), expected=400)
    assert found.share < 0.2
    odds = weights_of(found, comparisons()).link_scores(levels)
    assert odds[same].mean() > odds[~same].mean() + 1.0


def test_how_alike_pairs_are_is_how_few_random_pairs_are_as_much_so():
    random = np.array([[1], [1], [1], [2], [3], [0]], np.uint8)
    patterns = np.array([[0], [1], [2], [3]], np.uint8)
    shares = np.array([1.0, (1 + 1 + 2) / 8, 2 / 8])  # each level was seen once beforehand
    rising = surprise(patterns, random, comparisons("a", (3,)))
    np.testing.assert_allclose(rising, [0.0, *-np.log(shares)], atol=1e-12)
    falling = surprise(patterns, random, comparisons("a", (3,), "distance"))
    np.testing.assert_allclose(falling, [0.0, *-np.log([4 / 8, 6 / 8, 1.0])], atol=1e-12)
    twice = surprise(patterns.repeat(2, axis=1), random.repeat(2, axis=1), comparisons("aa", (3, 3)))
    np.testing.assert_allclose(twice, rising)


def test_labelled_pairs_tell_what_few_candidates_cannot(seed):
    levels, _ = drawn(seed, 30)
    random = drawn(seed + 1, 4_000, share=0.0)[0]
    labels = labels_of(*drawn(seed + 2, 2_000, share=0.5))
    led = fit_mixture(levels, random, comparisons(), labels, expected=5)
    for got, true in zip([*led.same, *led.other], [*SAME, *OTHER], strict=True):
        np.testing.assert_allclose(got, true, atol=0.05)


def test_labels_say_what_the_parts_look_like_but_not_how_large_they_are():
    levels, same = drawn(3, 20_000)
    random = drawn(4, 5_000, share=0.0)[0]
    only_same = labels_of(*drawn(5, 300, share=1.0))
    found = fit_mixture(levels, random, comparisons(), only_same, expected=2_000)
    assert found.share == pytest.approx(same.mean(), abs=0.03)


def test_labels_alone_give_their_own_frequencies():
    none = np.zeros((0, 1), np.uint8)
    levels = np.array([[2], [2], [1], [1], [1]], np.uint8)
    labels = labels_of(levels, np.array([True, True, False, False, True]))
    found = fit_mixture(none, none, comparisons("a", (2,)), labels, expected=0)
    assert found.share == 0.5
    same = np.array([LABELLED, 2 * LABELLED]) + SMOOTHING
    other = np.array([2 * LABELLED, 0.0]) + SMOOTHING
    np.testing.assert_allclose(found.same[0], same / same.sum())
    np.testing.assert_allclose(found.other[0], other / other.sum())


def test_without_candidates_or_comparisons_there_is_a_model_all_the_same():
    for width in (0, 2):
        one = comparisons("ab"[:width], (2, 3)[:width])
        none = np.zeros((0, width), np.uint8)
        model = weights_of(fit_mixture(none, none, one, expected=0.0), one)
        assert not model.values[2:].any()
    alike = np.zeros((4, 0), np.uint8)
    assert fit_mixture(alike, alike, [], expected=1.0).share == SHARES[1]


def test_different_rows_are_counted_as_numpy_counts_them():
    levels = np.random.default_rng(4).integers(0, 3, (2_000, 6)).astype(np.uint8)
    found, counts = different_rows(levels)
    order = np.lexsort(found.T[::-1])
    expected, times = np.unique(levels, axis=0, return_counts=True)
    assert np.array_equal(found[order], expected)
    assert np.array_equal(counts[order], times)
