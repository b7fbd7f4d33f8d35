"""Metrics of clusterings: their definitions written out slowly, examples by hand, what always holds."""

import json
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, rand_score
from sklearn.metrics.cluster import pair_confusion_matrix

from factorwise.metrics import coreference
from factorwise.metrics.clustering import (
    ClusterScore,
    Contingency,
    adjusted_rand_index,
    b_cubed,
    pairwise,
    pooled,
    rand_index,
    tally_adjusted_rand,
    tally_b_cubed,
    tally_pairwise,
    tally_rand,
)
from factorwise.metrics.coreference import (
    ClusteringTally,
    blanc,
    ceaf_e,
    ceaf_m,
    conll_average,
    lea,
    muc,
    score_clusterings,
    score_documents,
    tally_blanc,
    tally_ceaf_e,
    tally_ceaf_m,
    tally_lea,
    tally_muc,
)

METRICS = {
    "pairwise": (pairwise, tally_pairwise),
    "b_cubed": (b_cubed, tally_b_cubed),
    "muc": (muc, tally_muc),
    "ceaf_e": (ceaf_e, tally_ceaf_e),
    "ceaf_m": (ceaf_m, tally_ceaf_m),
    "blanc": (blanc, tally_blanc),
    "lea": (lea, tally_lea),
}
INDICES = {"rand": (rand_index, tally_rand), "adjusted_rand": (adjusted_rand_index, tally_adjusted_rand)}
EVERY = METRICS | INDICES
# These see no pairs across clusters, so that documents can be joined into one.
WITHIN_CLUSTERS = ("pairwise", "b_cubed", "muc", "ceaf_e", "ceaf_m", "lea")


def labels_of(*clusters):
    """Label of each letter, in the order of the alphabet."""
    return [number for _, number in sorted((item, k) for k, items in enumerate(clusters) for item in items)]


@st.composite
def clusterings(draw, largest=7, n_labels=5):
    """Two clusterings of the same few items, often alike, often of singletons or of one cluster."""
    n_items = draw(st.integers(1, largest))
    sides = st.one_of(
        st.lists(st.integers(0, n_labels - 1), min_size=n_items, max_size=n_items),
        st.just([0] * n_items),
        st.just(list(range(min(n_items, n_labels))) + [0] * (n_items - n_labels)),
    )
    truth = draw(sides)
    changed = draw(st.lists(st.booleans(), min_size=n_items, max_size=n_items))
    other = draw(sides)
    return truth, [new if change else old for old, new, change in zip(truth, other, changed, strict=True)]


documents = st.lists(clusterings(largest=5), min_size=1, max_size=4)


# The definitions, from sets of items.


def clusters_of(labels):
    return [{item for item, label in enumerate(labels) if label == name} for name in set(labels)]


def links_of(labels):
    """Pairs of items in one cluster, and pairs of items in two."""
    together = {pair for cluster in clusters_of(labels) for pair in combinations(sorted(cluster), 2)}
    return together, set(combinations(range(len(labels)), 2)) - together


def ratio(part, whole):
    return Fraction(part) / whole if whole else Fraction(0)


def harmonic(precision, recall):
    return ratio(2 * precision * recall, precision + recall)


def slow_sets(true, predicted):
    """Precision, recall, F1 of a predicted set."""
    precision, recall = (ratio(len(true & predicted), len(side)) for side in (predicted, true))
    return precision, recall, harmonic(precision, recall)


def both_ways(one_way):
    """Metric of which precision is recall with the sides exchanged."""

    def metric(truth, predicted):
        precision, recall = one_way(predicted, truth), one_way(truth, predicted)
        return precision, recall, harmonic(precision, recall)

    return metric


def slow_pairwise(truth, predicted):
    return slow_sets(links_of(truth)[0], links_of(predicted)[0])


@both_ways
def slow_b_cubed(truth, predicted):
    items = range(len(truth))
    total = Fraction(0)
    for item in items:
        mine = {other for other in items if truth[other] == truth[item]}
        total += Fraction(len({other for other in mine if predicted[other] == predicted[item]}), len(mine))
    return total / len(truth)


@both_ways
def slow_muc(truth, predicted):
    found = needed = 0
    for cluster in clusters_of(truth):
        pieces = {predicted[item] for item in cluster}
        found += len(cluster) - len(pieces)
        needed += len(cluster) - 1
    return ratio(found, needed)


def slow_matching(truth, predicted, similarity):
    """Try every one-to-one matching."""
    few, many = sorted((clusters_of(truth), clusters_of(predicted)), key=len)
    return max(
        sum((similarity(a, b) for a, b in zip(few, chosen, strict=True)), Fraction(0))
        for chosen in permutations(many, len(few))
    )


def slow_ceaf_e(truth, predicted):
    best = slow_matching(truth, predicted, lambda a, b: Fraction(2 * len(a & b), len(a) + len(b)))
    precision, recall = best / len(set(predicted)), best / len(set(truth))
    return precision, recall, harmonic(precision, recall)


def slow_ceaf_m(truth, predicted):
    best = slow_matching(truth, predicted, lambda a, b: Fraction(len(a & b)))
    precision = recall = best / len(truth)
    return precision, recall, harmonic(precision, recall)


def slow_blanc(truth, predicted):
    kinds = [
        slow_sets(true, found)
        for true, found in zip(links_of(truth), links_of(predicted), strict=True)
        if true
    ]
    return tuple(sum(values) / len(kinds) for values in zip(*kinds, strict=True)) or (0, 0, 0)


@both_ways
def slow_lea(truth, predicted):
    def links(cluster):
        return set(combinations(sorted(cluster), 2)) or {(item, item) for item in cluster}

    others = set().union(*map(links, clusters_of(predicted)))
    resolved = sum(
        len(cluster) * Fraction(len(links(cluster) & others), len(links(cluster)))
        for cluster in clusters_of(truth)
    )
    return resolved / len(truth)


def slow_rand(truth, predicted):
    agreements = [a & b for a, b in zip(links_of(truth), links_of(predicted), strict=True)]
    pairs = len(truth) * (len(truth) - 1) // 2
    return ratio(sum(map(len, agreements)), pairs) if pairs else Fraction(1)


def slow_adjusted_rand(truth, predicted):
    """Chance is the mean over all orders of the predicted labels."""
    true = links_of(truth)[0]
    shared = [len(true & links_of(order)[0]) for order in permutations(predicted)]
    expected = Fraction(sum(shared), len(shared))
    possible = Fraction(len(true) + len(links_of(predicted)[0]), 2) - expected
    return (shared[0] - expected) / possible if possible else Fraction(1)


SLOW = {
    name.removeprefix("slow_"): metric
    for name, metric in globals().items()
    if name in {f"slow_{known}" for known in EVERY}
}


@pytest.mark.parametrize("name", METRICS)
@given(case=clusterings())
def test_metrics_are_what_their_definitions_say(name, case):
    assert METRICS[name][0](*case) == pytest.approx(tuple(map(float, SLOW[name](*case))), abs=1e-14)


@given(clusterings(largest=6))
def test_rand_indices_are_what_their_definitions_say(case):
    assert rand_index(*case) == pytest.approx(float(slow_rand(*case)), abs=1e-14)
    assert adjusted_rand_index(*case) == pytest.approx(float(slow_adjusted_rand(*case)), abs=1e-14)


# Precision and recall as fractions, by hand. The clusterings are well-known ones: those of the tests of the
# reference scorer with given mentions, among them the examples of the first papers on B-cubed and MUC.
BIG, SMALL, BIG_TOO = "abcde", "fg", "hijkl"
WORKED = [
    ("b_cubed", (BIG, SMALL, BIG_TOO), (BIG, SMALL + BIG_TOO), "16/21", "1"),
    ("b_cubed", (BIG, SMALL, BIG_TOO), (BIG + BIG_TOO, SMALL), "7/12", "1"),
    ("muc", (BIG, SMALL, BIG_TOO), (BIG, SMALL + BIG_TOO), "9/10", "1"),
    ("muc", (BIG, SMALL, BIG_TOO), (BIG + BIG_TOO, SMALL), "9/10", "1"),
    ("ceaf_m", (BIG, SMALL, BIG_TOO), (BIG, SMALL + BIG_TOO), "10/12", "10/12"),
    ("ceaf_m", (BIG, SMALL, BIG_TOO), (BIG + BIG_TOO, SMALL), "7/12", "7/12"),
    ("ceaf_e", (BIG, SMALL, BIG_TOO), (BIG, SMALL + BIG_TOO), "11/12", "11/18"),
    ("ceaf_e", (BIG, SMALL, BIG_TOO), (BIG + BIG_TOO, SMALL), "5/6", "5/9"),
    ("lea", (BIG, SMALL, BIG_TOO), (BIG, SMALL + BIG_TOO), "13/18", "1"),
    ("lea", (BIG, SMALL, BIG_TOO), (BIG + BIG_TOO, SMALL), "29/54", "1"),
    ("pairwise", (BIG, SMALL, BIG_TOO), (BIG, SMALL + BIG_TOO), "21/31", "1"),
    ("muc", ("abcd",), ("ab", "cd"), "1", "2/3"),
    ("muc", ("ab", "cd"), ("abcd",), "2/3", "1"),
    ("lea", ("abcd",), ("ab", "cd"), "1", "1/3"),
    ("b_cubed", ("a", "bc", "def"), tuple("abcdef"), "1", "1/2"),
    ("muc", ("a", "bc", "def"), tuple("abcdef"), "0", "0"),
    ("lea", ("a", "bc", "def"), tuple("abcdef"), "1/6", "1/6"),
    ("ceaf_e", ("a", "bc", "def"), tuple("abcdef"), "13/36", "13/18"),
    ("b_cubed", ("a", "bc", "def"), ("abcdef",), "7/18", "1"),
    ("muc", ("a", "bc", "def"), ("abcdef",), "3/5", "1"),
    ("lea", ("a", "bc", "def"), ("abcdef",), "4/15", "5/6"),
    ("ceaf_e", ("a", "bc", "def"), ("abcdef",), "2/3", "2/9"),
]
# The same for BLANC, with F1, which is no harmonic mean there.
WORKED_BLANC = [
    (("a", "bc", "def"), tuple("abcdef"), "11/30", "1/2", "11/26"),
    (("a", "bc", "def"), ("abcdef",), "2/15", "1/2", "4/19"),
    (("abcdef",), ("abcdef",), "1", "1", "1"),
    (("abcdef",), tuple("abcdef"), "0", "0", "0"),
    (("abcdef",), ("ab", "cde", "f"), "1", "4/15", "8/19"),
    (tuple("abcdef"), tuple("abcdef"), "1", "1", "1"),
    (tuple("abcdef"), ("abcdef",), "0", "0", "0"),
    (tuple("abcdef"), ("ab", "cde", "f"), "1", "11/15", "11/13"),
    (("a",), ("a",), "0", "0", "0"),
]


@pytest.mark.parametrize(("name", "truth", "predicted", "precision", "recall"), WORKED)
def test_metrics_are_right_on_examples_worked_by_hand(name, truth, predicted, precision, recall):
    score = METRICS[name][0](labels_of(*truth), labels_of(*predicted))
    f1 = harmonic(Fraction(precision), Fraction(recall))
    assert score == pytest.approx((float(Fraction(precision)), float(Fraction(recall)), float(f1)), abs=1e-15)


@pytest.mark.parametrize(("truth", "predicted", "precision", "recall", "f1"), WORKED_BLANC)
def test_blanc_is_right_on_examples_worked_by_hand(truth, predicted, precision, recall, f1):
    score = blanc(labels_of(*truth), labels_of(*predicted))
    assert score == pytest.approx([float(Fraction(value)) for value in (precision, recall, f1)], abs=1e-15)


def test_rand_indices_are_right_on_an_example_worked_by_hand():
    assert rand_index([0, 0, 1, 2], [0, 0, 1, 1]) == pytest.approx(5 / 6)
    assert adjusted_rand_index([0, 0, 1, 2], [0, 0, 1, 1]) == pytest.approx(4 / 7)


@given(clusterings(largest=40, n_labels=9))
def test_pairs_are_those_of_scikit_learn(case):
    (tn, fp), (fn, tp) = (pair_confusion_matrix(*case) // 2).tolist()
    assert Contingency.of(*case).pairs == (tp, tp + fn, tp + fp, tn + fp + fn + tp)
    assert rand_index(*case) == pytest.approx(rand_score(*case), abs=1e-15)
    assert adjusted_rand_index(*case) == pytest.approx(adjusted_rand_score(*case), abs=1e-15)


@given(clusterings())
def test_a_perfect_prediction_gets_one_unless_there_is_no_link_to_find(case):
    truth = case[0]
    renamed = [f"cluster {label}" for label in truth]
    linkless = len(set(truth)) == len(truth)
    for name, (metric, _) in METRICS.items():
        nothing_to_find = (linkless and name in ("pairwise", "muc")) or (len(truth) == 1 and name == "blanc")
        assert metric(truth, renamed) == pytest.approx((0.0,) * 3 if nothing_to_find else (1.0,) * 3)
    assert rand_index(truth, renamed) == adjusted_rand_index(truth, renamed) == 1.0


@given(clusterings(largest=30, n_labels=8))
def test_exchanging_truth_and_prediction_exchanges_precision_and_recall(case):
    kinds_of_links = [bool(kind) for labels in case for kind in links_of(labels)]
    for name, (metric, _) in METRICS.items():
        if name == "blanc" and not all(kinds_of_links):
            continue  # the truth alone says which kinds count
        there, back = metric(*case), metric(*reversed(case))
        assert there == pytest.approx((back.recall, back.precision, back.f1), abs=1e-14)
    for index, _ in INDICES.values():
        assert index(*case) == pytest.approx(index(*reversed(case)), abs=1e-14)


@given(clusterings(largest=30, n_labels=8))
def test_figures_lie_between_their_bounds(case):
    for metric, _ in METRICS.values():
        score = metric(*case)
        assert all(0.0 <= value <= 1.0 + 1e-12 for value in score)
        if metric is not blanc:
            assert min(score[:2]) - 1e-12 <= score.f1 <= max(score[:2]) + 1e-12
    assert 0.0 <= rand_index(*case) <= 1.0
    assert -1.0 <= adjusted_rand_index(*case) <= 1.0


@given(clusterings(largest=20, n_labels=8), st.randoms(use_true_random=False))
def test_neither_names_of_clusters_nor_order_of_items_matter(case, random):
    order = list(range(len(case[0])))
    random.shuffle(order)
    names = [("one", 1.5), int, "two", frozenset({3}), -4, b"five", 6.5, True]
    random.shuffle(names)
    shuffled = [[names[side[item]] for item in order] for side in case]
    there, back = score_clusterings(*case).as_dict(), score_clusterings(*shuffled).as_dict()
    assert list(there) == list(back)
    for name, value in there.items():
        assert value == pytest.approx(back[name], abs=1e-14)


@given(clusterings(largest=20, n_labels=8))
def test_arrays_and_lists_give_the_same_tables(case):
    table = Contingency.of(*case)
    for convert in (
        np.array,
        tuple,
        iter,
        lambda labels: np.array(labels, dtype=np.uint8) + 200,
        lambda labels: np.array(labels, dtype=float),
        lambda labels: np.array([f"c{label}" for label in labels]),
        lambda labels: np.array([(label,) for label in labels] + [None], dtype=object)[:-1],
    ):
        other = Contingency.of(*map(convert, case))
        assert sorted(other.true_size) == sorted(table.true_size)
        assert sorted(zip(*cells(other), strict=True)) == sorted(zip(*cells(table), strict=True))


def cells(table):
    """Items in each cell and in its clusters."""
    return table.shared, table.true_size[table.true], table.predicted_size[table.predicted]


@given(clusterings(largest=20, n_labels=8))
def test_all_scores_together_are_those_of_the_single_functions(case):
    scores = score_clusterings(*case)
    for name, (metric, _) in EVERY.items():
        assert getattr(scores, name) == metric(*case)
    assert scores.conll == conll_average(*case)
    assert scores.conll == pytest.approx((scores.muc.f1 + scores.b_cubed.f1 + scores.ceaf_e.f1) / 3)
    assert (scores.documents, scores.items) == (1, len(case[0]))
    assert (scores.true_clusters, scores.predicted_clusters) == tuple(len(set(side)) for side in case)


@given(documents)
def test_pooled_documents_are_one_document_where_only_clusters_count(cases):
    truth, predicted = ([[*labels] for labels in side] for side in zip(*cases, strict=True))
    joined = [
        [(number, label) for number, labels in enumerate(side) for label in labels]
        for side in (truth, predicted)
    ]
    scores, whole = score_documents(truth, predicted), score_clusterings(*joined)
    for name in WITHIN_CLUSTERS:
        assert getattr(scores, name) == pytest.approx(getattr(whole, name), abs=1e-14)
        assert pooled(METRICS[name][1], truth, predicted).score == getattr(scores, name)
    assert scores.conll == pytest.approx(whole.conll, abs=1e-14)
    assert (scores.documents, scores.items) == (len(cases), whole.items)


@given(documents)
def test_pooled_figures_of_pairs_are_ratios_of_summed_counts(cases):
    truth, predicted = zip(*cases, strict=True)
    scores = score_documents(truth, predicted)
    links = [[links_of(labels) for labels in side] for side in (truth, predicted)]
    kinds = [
        slow_sets(
            *(
                {(number, *pair) for number, pairs in enumerate(side) for pair in pairs[kind]}
                for side in links
            )
        )
        for kind in (0, 1)
        if any(pairs[kind] for pairs in links[0])
    ]
    blanc_values = [sum(values) / len(kinds) for values in zip(*kinds, strict=True)] or [0, 0, 0]
    assert scores.blanc == pytest.approx([float(value) for value in blanc_values], abs=1e-14)
    n_pairs = [len(labels) * (len(labels) - 1) // 2 for labels in truth]
    agreed = sum(slow_rand(*case) * pairs for case, pairs in zip(cases, n_pairs, strict=True))
    assert scores.rand == pytest.approx(float(agreed / sum(n_pairs)) if sum(n_pairs) else 1.0, abs=1e-14)


def test_pooled_adjusted_rand_index_sets_the_chance_of_each_document_apart():
    truth, predicted = [[0, 0, 1, 2], [0, 0, 1]], [[0, 0, 1, 1], [0, 1, 0]]
    found, possible = Fraction(2, 3) + Fraction(-1, 3), Fraction(7, 6) + Fraction(2, 3)
    assert score_documents(truth, predicted).adjusted_rand == pytest.approx(float(found / possible))
    assert score_documents([[0], [0, 1]], [[0], [1, 0]]).adjusted_rand == 1.0


def test_documents_without_items_count_for_nothing():
    truth, predicted = [["a", "a", "b"], [], ["c"]], [[0, 1, 1], [], [0]]
    scores = score_documents(truth, predicted)
    assert scores == score_documents(truth[::2], predicted[::2])
    assert scores.documents == 2


def test_tallies_of_documents_can_be_added_one_by_one():
    truth, predicted = [[0, 0, 1], [0, 1, 1, 1]], [[0, 1, 1], [0, 0, 1, 1]]
    first, second = (ClusteringTally.of(Contingency.of(*case)) for case in zip(truth, predicted, strict=True))
    assert (first + second).scores == score_documents(truth, predicted)


def test_scores_become_json():
    record = json.loads(json.dumps(score_clusterings(np.array([0, 0, 1]), np.array([0, 1, 1])).as_dict()))
    assert record["b_cubed"] == pytest.approx({"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3})
    assert record["items"] == 3
    assert {*EVERY, "conll"} < set(record)


@pytest.mark.parametrize("n_labels", [3, 20, 100, 400])
@pytest.mark.parametrize("noise", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("dense_cells", [0, 50, 10**9])
def test_matching_group_by_group_is_as_good_as_matching_all_at_once(
    monkeypatch, n_labels, noise, dense_cells
):
    monkeypatch.setattr(coreference, "DENSE_CELLS", dense_cells)
    rng = np.random.default_rng(n_labels)
    truth, other = rng.integers(0, n_labels, (2, 1_000))
    predicted = np.where(rng.random(1_000) < noise, other, truth + n_labels * (rng.random(1_000) < 0.3))
    table = Contingency.of(truth, predicted)
    full = np.zeros((len(table.true_size), len(table.predicted_size)))
    full[table.true, table.predicted] = table.shared
    assert tally_ceaf_m(table).recall_part == full[linear_sum_assignment(full, maximize=True)].sum()
    full *= 2 / (table.true_size[:, None] + table.predicted_size)
    best = full[linear_sum_assignment(full, maximize=True)].sum()
    assert tally_ceaf_e(table).recall_part == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("dense_cells", [0, 10**9])
def test_a_chain_of_overlaps_is_matched_link_by_link(monkeypatch, dense_cells):
    # Clusters of two, each of which shares one item with the next: all find a partner, for one item each.
    monkeypatch.setattr(coreference, "DENSE_CELLS", dense_cells)
    items = np.arange(2_001)
    assert ceaf_m(items // 2, (items + 1) // 2).recall == 1_001 / 2_001


def test_pair_counts_of_many_items_do_not_overflow():
    n_items = 3_000_000_000
    table = Contingency(
        true_size=np.array([n_items]),
        predicted_size=np.array([n_items // 3, n_items - n_items // 3]),
        true=np.array([0, 0]),
        predicted=np.array([0, 1]),
        shared=np.array([n_items // 3, n_items - n_items // 3]),
    )
    assert tally_pairwise(table).score == pytest.approx((1.0, 5 / 9, 5 / 7))
    assert tally_rand(table).score == pytest.approx(5 / 9)
    assert tally_adjusted_rand(table).score == 0.0
    assert tally_b_cubed(table).score == pytest.approx((1.0, 5 / 9, 5 / 7))
    assert tally_lea(table).score == pytest.approx((1.0, 5 / 9, 5 / 7))


def test_a_score_is_a_plain_tuple_of_three():
    assert b_cubed([0], [0]) == ClusterScore(precision=1.0, recall=1.0, f1=1.0) == (1.0, 1.0, 1.0)
