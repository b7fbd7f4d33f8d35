"""What a resolution says: confidence, doubtful pairs, the second-best clustering, one record per entity."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.linked_items import LinkedItems
from factorwise.apps.resolution.linking import link
from factorwise.apps.resolution.merge_odds import MergeLine, MergeOdds
from factorwise.apps.resolution.resolving import draw_posterior, searched
from factorwise.apps.resolution.results import answers
from factorwise.apps.resolution.results.answers import Resolution
from factorwise.apps.resolution.results.naming import entity_names
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.search import Found, LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.level_weights import LevelWeights
from linkage_cases import partitions
from resolution_cases import compared, known_of, link_score, people_table

ALONE = Team(1)
FALSE_ALARM = 1e-5
TEMPERATURE = 0.7
DRAWS = 400
ODDS = MergeOdds(MergeLine(0.0, 0.7, 0.7, 0.0), MergeLine(0.0, 0.7, 0.7, 0.0))
NAMESAKES = {"p0", "p11", "p22"}  # of one surname: all are linked


def resolved(table, knowledge, *, posterior=True, constraints=None):
    linked = link(table, knowledge, constraints=constraints, team=ALONE)
    found = searched(linked, LinkSearch(), seed=1, team=ALONE)
    labels = linked.rows_of_units(linked.walk.labels)
    ids = table.column("id").combine_chunks()
    return Resolution(
        ids=ids,
        entity=entity_names(ids, labels),
        labels=labels,
        confidence=linked.walk.home_chances(TEMPERATURE, team=ALONE)[linked.unit],
        linked=linked,
        found=found,
        posterior=draw_posterior(linked.walk, ODDS, draws=DRAWS, seed=2) if posterior else None,
    )


def plain(labels, confidence=None, weighed=None):
    """A resolution of which nothing but the entities matters."""
    ids = pa.array([f"r{row}" for row in range(len(labels))])
    chances = np.ones(len(labels), np.float32) if confidence is None else np.array(confidence, np.float32)
    names = entity_names(ids, np.array(labels))
    linked, found = Mock(spec=LinkedItems), Mock(spec=Found)
    return Resolution(ids, names, np.array(labels, np.int32), chances, linked, found, weighed=weighed)


def test_a_resolution_is_shown_in_a_line(tiny):
    table, knowledge, *_ = tiny
    assert repr(plain([0, 0, 1])) == "Resolution(records=3, entities=2, draws=0)"
    assert repr(resolved(table, knowledge)).endswith(", draws=400)")


@pytest.fixture(scope="module")
def tiny():
    """Seven records, weights that leave their clustering in doubt, and all clusterings with their chances."""
    everyone = people_table(23)
    rows = [row for row, person in enumerate(everyone.column("person").to_pylist()) if person in NAMESAKES]
    table = everyone.take(rows)
    sizes = known_of(everyone).weights.sizes
    weights = 0.35 * np.random.default_rng(4).normal(size=len(LevelWeights.zeros(sizes).values))
    knowledge = known_of(everyone, weights=weights)
    pairs, levels = compared(table, knowledge)
    worlds = partitions(7)
    scores = [link_score(knowledge.weights, world, pairs.first, pairs.second, levels) for world in worlds]
    odds = np.exp((np.array(scores) - max(scores)) / TEMPERATURE)
    return table, knowledge, worlds, odds / odds.sum()


def test_the_best_clustering_and_its_confidence_are_those_of_enumeration(tiny):
    table, knowledge, worlds, chances = tiny
    found = resolved(table, knowledge, posterior=False)
    best = worlds[int(np.argmax(chances))]
    assert [best[row] == best[other] for row in range(7) for other in range(7)] == [
        found.labels[row] == found.labels[other] for row in range(7) for other in range(7)
    ]
    for row in range(7):
        others = [k for k in range(7) if k != row]
        fits = [all((w[a] == w[b]) == (best[a] == best[b]) for a in others for b in others) for w in worlds]
        total = sum(c for c, fit in zip(chances, fits, strict=True) if fit)
        assert found.confidence[row] == pytest.approx(max(chances) / total, abs=1e-4)


def test_the_probability_of_a_doubtful_pair_is_that_of_the_tree(tiny):
    table, knowledge, *_ = tiny
    found = resolved(table, knowledge)
    rows = {identity: row for row, identity in enumerate(table.column("id").to_pylist())}
    graph, unit = found.linked.walk.graph, found.linked.unit.tolist()
    exact = dict(zip(zip(graph.first, graph.second, strict=True), found.posterior.together, strict=True))
    listed = found.pairs().to_pylist()
    assert len(listed) >= 2
    for one in listed:
        pair = sorted(unit[rows[one[name]]] for name in ("id", "other"))
        assert one["probability"] == exact.get(tuple(pair), exact.get(tuple(reversed(pair))))
    doubt = [min(one["probability"], 1.0 - one["probability"]) for one in listed]
    assert doubt == sorted(doubt, reverse=True)


def test_an_entity_has_the_probability_of_its_records_being_one_cluster(tiny):
    table, knowledge, *_ = tiny
    found = resolved(table, knowledge)
    same = [same_pairs(labels) for labels in found.posterior.labels[:, found.linked.unit].tolist()]
    for one in found.entities().to_pylist():
        members = [name == one["entity"] for name in found.entity.to_pylist()]
        inside = [[a == b for b in members] for a in members]  # what must hold of a record of the entity
        share = np.mean(
            [
                all(
                    pairs[7 * row + k] == inside[row][k] for row in range(7) if members[row] for k in range(7)
                )
                for pairs in same
            ]
        )
        error = np.sqrt(one["probability"] * (1.0 - one["probability"]) / DRAWS)
        assert abs(one["probability"] - share) <= norm.isf(FALSE_ALARM) * error + 1e-6
    plain_entities = resolved(table, knowledge, posterior=False).entities()
    assert plain_entities.column("probability").null_count == plain_entities.num_rows


def test_the_two_likeliest_clusterings_of_a_doubtful_group_differ(tiny):
    table, knowledge, *_ = tiny
    groups = {}
    for row in resolved(table, knowledge).second_best().to_pylist():
        groups.setdefault(row["group"], []).append(row)
    assert groups
    for rows in groups.values():
        assert [row["best"] for row in rows] != [row["second"] for row in rows]
        assert len({(row["best_share"], row["second_share"]) for row in rows}) == 1
        assert 0.5 >= rows[0]["second_share"] > 0.0
        assert 1.0 > rows[0]["best_share"] >= rows[0]["second_share"]
        ids = {row["id"] for row in rows}
        assert ids <= set(table.column("id").to_pylist())
        for clustering in ("best", "second"):
            entities = {row["id"]: row[clustering] for row in rows}
            assert all(entities[name] == name <= one for one, name in entities.items())


def same_pairs(labels):
    return [one == other for one in labels for other in labels]


def test_all_records_of_one_item_stand_in_doubtful_pairs_and_groups(tiny):
    table, knowledge, *_ = tiny
    tied = [0, 4, 6]
    limits = Constraints(must=np.array([[4, 0], [4, 6]]))
    found = resolved(table, knowledge, constraints=limits)
    ids = table.column("id").to_pylist()
    one = {ids[row] for row in tied}
    chances = {}
    for row in found.pairs().to_pylist():
        pair = {row["id"], row["other"]}
        assert not pair <= one  # they are together for certain
        chances[frozenset(pair)] = row["probability"]
    others = {other for pair in chances for other in pair - one if pair & one}
    assert others
    assert all(len({chances[frozenset([a, other])] for a in one}) == 1 for other in others)
    groups = [row for row in found.second_best().to_pylist() if row["id"] in one]
    assert {row["id"] for row in groups} == one
    for clustering in ("group", "best", "second"):
        assert len({row[clustering] for row in groups}) == 1


def test_lists_of_doubt_end_where_they_become_too_long(tiny, monkeypatch):
    found = resolved(*tiny[:2], constraints=Constraints(must=np.array([[4, 0], [4, 6]])))
    whole = found.pairs()
    monkeypatch.setattr(answers, "MOST_LISTED", 4)
    assert found.pairs().equals(whole.slice(0, 4))
    monkeypatch.setattr(answers, "MOST_GROUPS", 0)
    assert found.second_best().num_rows == 0
    assert found.second_best().column_names[:4] == ["group", "id", "best", "second"]


def test_after_an_update_doubtful_pairs_are_of_the_rows_that_were_weighed(tiny):
    table, knowledge, *_ = tiny
    found = resolved(table, knowledge)
    rows = np.array([2, 3, 5, 6, 9, 11, 12])
    within = dict(zip(found.ids.to_pylist(), [f"r{row}" for row in rows], strict=True))
    after = replace(found, ids=pa.array([f"r{row}" for row in range(13)]), weighed=rows)
    for table_of in (Resolution.pairs, Resolution.second_best):
        named = [within[identity] for identity in table_of(found).column("id").to_pylist()]
        assert table_of(after).column("id").to_pylist() == named
        assert named


def test_without_draws_doubt_cannot_be_told(tiny):
    found = resolved(*tiny[:2], posterior=False)
    for question in (found.pairs, found.second_best):
        with pytest.raises(InvalidArgumentError, match="resolve with posterior=True"):
            question()


def test_an_entity_is_as_coherent_as_its_least_sure_record():
    found = plain([4, 4, 2, 4], [0.9, 0.5, 1.0, 0.75])
    assert found.n_entities == 2
    assert found.entities().to_pylist() == [
        {"entity": "r2", "records": 1, "coherence": 1.0, "probability": None},
        {"entity": "r0", "records": 3, "coherence": 0.5, "probability": None},
    ]
    assert found.table().to_pylist()[1] == {"id": "r1", "entity": "r0", "confidence": 0.5}


def test_what_was_not_weighed_has_no_confidence():
    found = plain([0, 0, 1], [np.nan, np.nan, 0.5])
    assert found.table().column("confidence").to_pylist() == [None, None, 0.5]
    assert found.entities().column("coherence").to_pylist() == [None, 0.5]


# one record per entity


def canonical(labels, **columns):
    return plain(labels).canonical(pa.table(columns)).to_pylist()


def test_the_value_that_most_records_have_stands_for_all():
    rows = canonical([0, 0, 0, 1], a=["x", "yy", "x", "z"], n=[1, 2, 2, None])
    assert rows == [
        {"entity": "r0", "records": 3, "a": "x", "n": 2},
        {"entity": "r3", "records": 1, "a": "z", "n": None},
    ]


def test_of_equally_frequent_values_the_longest_then_the_first_by_letters_wins_and_missing_ones_do_not():
    rows = canonical([0] * 4, a=["bb", "ab", "c", None], b=[None, None, None, "d"])
    assert (rows[0]["a"], rows[0]["b"]) == ("ab", "d")


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        ([None, None, None], pa.null(), None),
        ([["a", "b"], ["a", "b"], ["c"]], pa.list_(pa.string()), "a|b"),
        ([{"k": 1}, {"k": 1}, {"k": 2}], None, "{'k': 1}"),
        ([b"\xff", b"\xff", b"a"], pa.binary(), b"\xff"),
        ([True, False, False], pa.bool_(), False),
        (["u", "v", "v"], pa.dictionary(pa.int32(), pa.string()), "v"),
    ],
    ids=["nothing", "lists", "records", "bytes", "truth", "coded"],
)
def test_columns_of_every_type_have_a_most_common_value(values, kind, wanted):
    column = pa.array(values) if kind is None else pa.array(values, kind)
    assert canonical([0, 0, 0], a=column)[0]["a"] == wanted


def test_columns_called_as_those_that_are_added_get_other_names():
    rows = canonical([0, 0], entity=["x", "x"], records=[7, 7], a=["b", "b"])
    assert rows == [{"entity": "r0", "records": 2, "entity_given": "x", "records_given": 7, "a": "b"}]
