"""Entities from scored pairs: constants without labels and with, constraints, uncertain pairs."""

from itertools import combinations

import numpy as np
import pytest

import factorwise as fw
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.scored_pairs.constants import (
    THRESHOLDS,
    estimate_constants,
    find_valley,
    measure_closure,
)
from factorwise.apps.resolution.scored_pairs.tables import read_scored_pairs
from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.metrics.clustering import b_cubed
from scored_pair_cases import BRIDGE, labels_in_order, scored_table

SIZES = [4, 3, 5, 2, 1, 4, 3, 6, 1, 2] * 3


def f1(answer, truth):
    return b_cubed(truth, labels_in_order(answer)(len(truth))).f1


def test_entities_are_found_and_a_false_pair_does_not_chain_two():
    table, truth = scored_table(SIZES, bridges=3, absent=0.0, seed=1)
    answer = fw.PairClusterer().fit(table).cluster(table)
    assert f1(answer, truth) > 0.97
    ends = [(row["id"], row["other"]) for row in table if row["log_odds"] == BRIDGE]
    found = dict(zip(answer.ids.to_pylist(), answer.entity.to_pylist(), strict=True))
    assert [found[a] != found[b] for a, b in ends] == [True] * 3


@pytest.mark.parametrize("shift", [-3.0, 3.0])
def test_scores_that_are_not_calibrated_are_shifted(shift):
    table, truth = scored_table(SIZES, shift=shift, seed=2)
    clusterer = fw.PairClusterer().fit(table)
    assert clusterer.constants_.offset * shift < 0.0 or shift < 0.0
    assert f1(clusterer.cluster(table), truth) > 0.97


def closed_shares(scored, threshold):
    """The definition: of each record with two links or more, the share of pairs of links that are closed."""
    links = {
        (a, b)
        for a, b, s in zip(scored.first.tolist(), scored.second.tolist(), scored.log_odds, strict=True)
        if s > threshold
    }
    shares = []
    for record in range(scored.n_records):
        near = sorted({a + b - record for a, b in links if record in (a, b)})
        wedges = list(combinations(near, 2))
        if wedges:
            shares.append(sum(pair in links for pair in wedges) / len(wedges))
    return shares


def test_closure_is_the_mean_share_of_closed_triangles():
    scored = read_scored_pairs(scored_table(SIZES, noise=3.0, bridges=2, seed=3)[0])
    closure = measure_closure(scored, seed=0)
    for place in (0, 4, 6, 9):
        shares = closed_shares(scored, THRESHOLDS[place])
        assert closure.records[place] == len(shares)
        np.testing.assert_allclose(closure.closed[place], sum(shares))


def test_a_valley_between_two_populations_is_found_where_no_triangle_says_anything():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(1.0, 1.0, 300), rng.normal(9.0, 1.0, 100)])
    pairs = [{"id": f"a{k}", "other": f"b{k}", "log_odds": s} for k, s in enumerate(scores)]
    scored = read_scored_pairs(pairs)
    threshold, depth = find_valley(scored)
    assert 4.0 < threshold < 6.5
    assert depth > 3.0
    constants = estimate_constants(scored, seed=0)
    assert -threshold < constants.offset < -threshold / 2.0
    assert "valley" in constants.reason


def test_few_pairs_are_clustered_by_their_scores_as_they_are():
    table = [{"id": 1, "other": 2, "probability": 0.9}, {"id": 2, "other": 3, "probability": 0.2}]
    clusterer = fw.PairClusterer().fit(table)
    assert clusterer.constants_.offset == pytest.approx(0.0)
    assert clusterer.cluster(table).labels.tolist() == [0, 0, 2]


def test_given_constants_are_taken():
    table = scored_table([3, 2])[0]
    clusterer = fw.PairClusterer(offset=-20.0, unlinked=-2.0, temperature=3.0).fit(table)
    assert clusterer.constants_[:3] == (-20.0, -2.0, 3.0)
    assert clusterer.cluster(table).n_entities == 5
    with pytest.raises(InvalidArgumentError, match="temperature"):
        fw.PairClusterer(temperature=0.0)


def test_constraints_hold():
    table, _ = scored_table([3, 3, 3], absent=0.0)
    scored = read_scored_pairs(table)
    rows = {name: row for row, name in enumerate(scored.ids.to_pylist())}
    must = np.array([[rows["r0"], rows["r8"]]])
    cannot = np.array([[rows["r3"], rows["r4"]]])
    answer = fw.PairClusterer().cluster(scored, constraints=Constraints(must=must, cannot=cannot))
    found = dict(zip(answer.ids.to_pylist(), answer.entity.to_pylist(), strict=True))
    assert found["r0"] == found["r8"]
    assert found["r3"] != found["r4"]
    sources = (np.arange(9) % 2).astype(np.int32)
    answer = fw.PairClusterer().cluster(scored, constraints=Constraints(sources=sources, one_per_source=True))
    for label in np.unique(answer.labels):
        assert len(set(sources[answer.labels == label])) == (answer.labels == label).sum()


def test_labels_move_the_constants_only_where_they_say_so():
    table, truth = scored_table(SIZES, shift=-5.5, absent=0.3, seed=4)
    labels = [{"id": f"r{row}", "entity": int(entity)} for row, entity in enumerate(truth)]
    blind = fw.PairClusterer(offset=0.0).fit(table)
    assert f1(blind.cluster(table), truth) < 0.6
    free = fw.PairClusterer().fit(table, labels)
    assert f1(free.cluster(table), truth) > 0.9
    assert "labelled" in free.constants_.reason
    judged = [{"id": "r0", "other": "r1", "same": True}, {"id": "r0", "other": "r4", "same": False}]
    few = fw.PairClusterer().fit(table, judged)
    assert few.constants_.offset == fw.PairClusterer().fit(table).constants_.offset
    with pytest.raises(DataFileError, match="labels need the columns"):
        fw.PairClusterer().fit(table, [{"id": "r0", "person": "a"}])


def test_uncertain_pairs_and_seeds():
    table, _ = scored_table(SIZES, noise=4.0, seed=5)
    answer = fw.PairClusterer(random_state=3).cluster(table, posterior=True)
    again = fw.PairClusterer(random_state=3, n_jobs=2).cluster(table, posterior=True)
    assert answer.table().equals(again.table())
    assert answer.pairs().equals(again.pairs())
    assert answer.pairs().num_rows > 0
