"""Parts of lessons, and the trials that weights are judged by."""

import numpy as np

from factorwise.apps.resolution import lessons
from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs
from factorwise.apps.resolution.lessons import Lesson, Trial, effective_number, held_out, trials
from factorwise.inference.mcmc.shards.link_walk import LinkGraph
from factorwise.metrics.clustering import Tally, b_cubed
from resolution_cases import lesson


def test_entities_are_kept_apart_whole_each_once_and_records_of_unknown_ones_never():
    entity = np.concatenate([np.repeat(np.arange(100), 3), [-1, -1]])
    apart = held_out(entity, seed=3)
    assert len(apart) == 5
    assert not any(one[-2:].any() for one in apart)
    assert all(one[:-2].reshape(100, 3).all(axis=1).sum() == one.sum() // 3 == 20 for one in apart)
    assert np.array_equal(sum(one[:-2].astype(int) for one in apart), np.ones(300))
    assert not np.array_equal(apart[0], held_out(entity, seed=4)[0])


def test_few_entities_are_not_kept_apart_at_all():
    assert held_out(np.repeat(np.arange(39), 3), seed=0) == []
    assert len(held_out(np.repeat(np.arange(40), 3), seed=0)) == 5


def test_of_many_records_fewer_trials_are_made_and_of_very_many_smaller_ones(monkeypatch):
    monkeypatch.setattr(lessons, "JUDGED", 130)
    apart = held_out(np.repeat(np.arange(100), 3), seed=3)
    assert [one.sum() for one in apart] == [60, 60]
    monkeypatch.setattr(lessons, "MOST_HELD_OUT", 30)
    monkeypatch.setattr(lessons, "JUDGED", 30)
    assert [one.sum() for one in held_out(np.repeat(np.arange(100), 3), seed=3)] == [30]


def test_a_trial_judges_entities_among_all_records_they_are_linked_with():
    given = lesson(unknown=8)
    found = trials(given, seed=0)
    assert len(found) == 5
    for trial in found:
        judged = int(trial.judged.sum())
        assert trial.training.graph.n_items == 120 - judged
        assert judged < trial.among.graph.n_items <= 2 * judged
        links = np.diff(trial.among.graph.start)
        assert (links[trial.judged] == 3).all()  # all that it had


def test_the_score_of_all_records_is_b_cubed():
    draws = np.random.default_rng(0)
    given = lesson()
    labels = draws.integers(0, 40, 120)
    everyone = Trial(given, given, np.ones(120, bool))
    assert abs(everyone.score(labels).score.f1 - b_cubed(given.entity, labels).f1) < 1e-12


def test_the_score_of_some_records_counts_the_others_in_their_clusters():
    given = Lesson(
        LinkGraph.from_pairs(5, np.array([0], np.int32), np.array([1], np.int32)),
        np.ones((1, 1), np.uint8),
        np.array([0, 0, 1, 1, -1], np.int32),
    )
    judged = np.array([True, True, False, False, False])
    score = Trial(given, given, judged).score(np.array([7, 7, 7, 8, 7]))
    assert score == Tally(2 * 2 / 3, 2, 2.0, 2)
    assert abs(score.score.f1 - 0.8) < 1e-12


def test_a_few_large_entities_tell_little():
    assert effective_number(np.repeat(np.arange(12), 5)) == 12.0
    assert effective_number(np.append(np.zeros(100, int), [1, 2])) < 1.1


def test_a_part_of_a_lesson_is_what_concerns_its_records():
    whole = lesson(entities=8, unknown=1)
    rows = LabelledPairs(np.array([1, 5, 2]), np.array([2, 6, 7]), np.array([True, False, True]))
    whole = Lesson(whole.graph, whole.levels, whole.entity, ComparedLabels(rows, np.array([[1], [2], [0]])))
    chosen = np.ones(16, bool)
    chosen[[0, 1, 6]] = False
    rows = np.flatnonzero(chosen)
    part = whole.part(rows)
    inside = chosen[whole.graph.first] & chosen[whole.graph.second]
    ends, before = (
        np.sort(np.stack([graph.first, graph.second], axis=1)) for graph in (part.graph, whole.graph)
    )
    assert np.array_equal(rows[ends], before[inside])
    assert np.array_equal(part.levels, whole.levels[inside])
    assert part.entity.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    (first, second, same), levels = part.labelled
    assert (rows[first].tolist(), rows[second].tolist()) == ([2], [7])
    assert (same.tolist(), levels.tolist()) == ([True], [[0]])


def test_few_entities_give_labelled_pairs_and_many_none():
    few = lesson(entities=20, unknown=4)
    rows = LabelledPairs(np.array([0, 1]), np.array([4, 5]), np.array([False, True]))
    few = Lesson(few.graph, few.levels, few.entity, ComparedLabels(rows, np.array([[1], [2]], np.uint8)))
    (first, second, same), levels = few.known_pairs(seed=0)
    assert (first[:2].tolist(), second[:2].tolist(), same[:2].tolist()) == ([0, 1], [4, 5], [False, True])
    assert len(first) == 2 + 9 * 6  # blocks of four known records
    assert np.array_equal(same[2:], few.entity[first[2:]] == few.entity[second[2:]])
    assert np.array_equal(levels[2:, 0] == 2, same[2:])
    assert lesson(entities=40).known_pairs(seed=0) is None
