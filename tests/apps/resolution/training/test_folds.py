"""Folds of entities, out-of-fold scores, and the comparison of clusterings on held-out entities."""

import numpy as np
import pytest

from factorwise.apps.resolution.training import folds
from factorwise.apps.resolution.training.examples import TrainingData
from factorwise.apps.resolution.training.folds import FOLDS, hold_out
from factorwise.inference.mcmc.shards.link_walk import LinkGraph
from factorwise.metrics.clustering import b_cubed
from resolution_cases import training_data


def test_blocks_lie_in_one_fold_and_records_of_unknown_entities_in_none():
    given = training_data(unknown=8)
    found = hold_out(given, seed=3)
    assert (found.fold[:8] == -1).all()
    of_block = found.fold[8:].reshape(-1, 4)  # two entities, linked by all of their pairs
    assert (of_block == of_block[:, :1]).all()
    assert np.bincount(found.fold[8:]).tolist() == [40, 36, 36]
    assert not np.array_equal(found.fold, hold_out(given, seed=4).fold)


def test_entities_of_one_large_block_are_folded_one_by_one():
    entity = np.repeat(np.arange(20), 2).astype(np.int32)
    first, second = (ends.astype(np.int32) for ends in np.triu_indices(40, 1))
    levels = np.ones((len(first), 1), np.uint8)
    found = hold_out(TrainingData(LinkGraph.from_pairs(40, first, second), levels, entity), seed=0)
    assert len(set(found.group.tolist())) == 20
    assert np.bincount(found.fold).tolist() == [14, 14, 12]


def test_with_few_entities_there_are_no_folds():
    assert hold_out(training_data(entities=4), seed=0) is None
    assert hold_out(training_data(entities=6), seed=0) is not None


def test_a_pair_is_scored_by_what_was_fitted_without_the_folds_of_its_records():
    found = hold_out(training_data(unknown=6), seed=0)
    graph, seen = found.among.graph, []

    def fit(examples):
        seen.append(len(examples.same))
        return lambda levels: np.full(len(levels), 10.0 ** (len(seen) - 1))

    score = found.out_of_fold_scores(fit)
    one, two = found.fold_among[graph.first], found.fold_among[graph.second]
    assert (score[(one == 1) & (two == 1)] == 10.0).all()
    assert (score[(one < 0) & (two < 0)] == 37.0).all()
    assert (score[(one < 0) & (two >= 0)] == 10.0 ** two[(one < 0) & (two >= 0)]).all()
    assert len(seen) == FOLDS
    assert max(seen) < len(found.data.pair_examples(found.data.entity >= 0).same)


def test_of_very_many_records_some_are_compared_on_among_all_that_they_are_linked_with(monkeypatch):
    monkeypatch.setattr(folds, "MOST_JUDGED", 30)
    found = hold_out(training_data(unknown=8), seed=0)
    assert found.judged.sum() == 28  # seven blocks
    assert found.among.graph.n_items == 28
    assert (np.diff(found.among.graph.start) == 3).all()  # all links that they had
    assert len(found.fold) == 120


def test_the_score_of_all_records_is_b_cubed_and_unknown_ones_count_for_nothing():
    found = hold_out(training_data(unknown=6), seed=0)
    known = found.among.entity >= 0
    assert (len(known), known.sum()) == (116, 114)  # those that are linked with known ones, too
    labels = np.random.default_rng(0).integers(0, 40, 116)
    expected = b_cubed(found.among.entity[known], labels[known]).f1
    assert found.judge(labels, flat_scores(found)).score.f1 == pytest.approx(expected, abs=1e-12)


def test_the_lead_has_a_standard_error_that_says_when_it_is_chance():
    """Right but for random singles: the error of the lead is about its spread over draws of these."""
    found, rng, leads, errors = (
        hold_out(training_data(entities=400), seed=0),
        np.random.default_rng(1),
        [],
        [],
    )
    flat = flat_scores(found)
    for _ in range(200):
        one, two = (np.where(rng.random(800) < 0.1, 1_000 + np.arange(800), found.data.entity) for _ in "ab")
        lead, error = found.judge(one, flat).lead_over(found.judge(two, flat))
        leads.append(lead)
        errors.append(error)
    assert abs(np.mean(leads)) < 3.0 * np.std(leads) / 200**0.5
    assert np.mean(errors) == pytest.approx(np.std(leads), rel=0.2)
    same = found.judge(found.data.entity, flat)
    assert same.lead_over(same) == same.loss_saved_over(same) == (0.0, 0.0)


def test_the_loss_of_pairs_has_a_standard_error_too():
    """Scores that tell the truth but for noise: the error of what is saved is about its spread over draws."""
    found, rng, saved, errors = (
        hold_out(training_data(entities=200), seed=0),
        np.random.default_rng(2),
        [],
        [],
    )
    graph, entity = found.among.graph, found.among.entity
    sign = np.where(entity[graph.first] == entity[graph.second], 1.0, -1.0)
    for _ in range(200):
        one, two = (found.judge(entity, 2.0 * sign + rng.normal(size=len(sign)) * 3.0) for _ in "ab")
        gain, error = one.loss_saved_over(two)
        saved.append(gain)
        errors.append(error)
    assert abs(np.mean(saved)) < 3.0 * np.std(saved) / 200**0.5
    assert np.mean(errors) == pytest.approx(np.std(saved), rel=0.2)
    clear, noisy = (found.judge(entity, 2.0 * sign + rng.normal(size=len(sign)) * s) for s in (1.0, 3.0))
    gain, error = clear.loss_saved_over(noisy)
    assert gain > 5.0 * error


def flat_scores(found):
    return np.zeros(len(found.among.graph.first))
