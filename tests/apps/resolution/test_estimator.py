"""The estimator: fit, predict, score, resolve, update, save and load."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import factorwise as fw
from factorwise import EntityResolver
from factorwise.apps import resolution
from factorwise.apps.resolution import linking
from factorwise.apps.resolution.blocking import joins
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import DataFileError, FactorwiseError, InvalidArgumentError
from factorwise.inference.mcmc.shards import search as linkage_search
from factorwise.io.checkpoints import FILE
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from record_cases import people, without, write_csv
from resolution_cases import clusters, people_table

RECORDS = people(40)
OTHERS = people(130)[-130:]
TRUTH = [record["person"] for record in RECORDS]
FAST = {"passes": 3, "steps": 10, "rounds": 8, "n_jobs": 1}


@pytest.fixture(scope="module")
def resolver():
    """Trained on records of which most are not among those resolved below."""
    return EntityResolver(**FAST).fit(OTHERS, "person", id="id")


@pytest.fixture(scope="module")
def found(resolver):
    return resolver.resolve(RECORDS, id="id")


def test_it_is_among_the_public_names():
    assert fw.EntityResolver is resolution.EntityResolver is EntityResolver
    assert fw.resolution is resolution
    assert set(resolution.__all__) <= set(dir(resolution))
    for name in resolution.__all__:
        assert getattr(resolution, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_name"):
        resolution.no_such_name  # noqa: B018


def test_entities_of_other_records_are_found(resolver, found):
    assert b_cubed(TRUTH, found.labels.tolist()).f1 > 0.95
    assert resolver.score(RECORDS, "person") == pytest.approx(b_cubed(TRUTH, found.labels.tolist()).f1)
    assert resolver.predict(RECORDS).tolist() == found.labels.tolist()


def test_what_was_learned_says_which_training_method_was_taken(resolver):
    training = resolver.knowledge_.training
    assert training["methods"][training["method"]] == training["b_cubed"]
    assert resolver.history_ == []  # walks learn the weights of templates alone


def test_one_record_is_one_entity():
    found = EntityResolver(n_jobs=1).fit(RECORDS[:1], id="id").resolve(RECORDS[:1], id="id", posterior=True)
    assert found.table().to_pylist() == [{"id": "100", "entity": "100", "confidence": 1.0}]
    assert found.pairs().num_rows == found.second_best().num_rows == 0
    with pytest.raises(InvalidArgumentError, match="no column has anything to compare"):
        EntityResolver().fit([{"id": "1", "a": None}, {"id": "2", "a": None}], id="id")


def test_entities_are_named_by_their_smallest_id(found):
    ids = [int(record["id"]) for record in RECORDS]
    for row, name in enumerate(found.entity.to_pylist()):
        assert int(name) == min(
            i for i, label in zip(ids, found.labels, strict=True) if label == found.labels[row]
        )


def test_names_do_not_depend_on_the_order_of_records_in_an_easy_table(resolver, found):
    again = resolver.resolve(RECORDS[::-1], id="id")
    assert again.entity.to_pylist()[::-1] == found.entity.to_pylist()


def test_records_without_known_entity_do_not_count_in_the_score(resolver):
    partly = [name if row % 2 else None for row, name in enumerate(TRUTH)]
    labels = resolver.predict(RECORDS)
    known = np.arange(len(TRUTH)) % 2 == 1
    assert resolver.score(RECORDS, partly) == pytest.approx(b_cubed(np.array(TRUTH)[known], labels[known]).f1)


def test_records_may_come_in_any_form(resolver, found, tmp_path):
    path = write_csv(tmp_path / "r.csv", RECORDS)
    for records in (path, str(path), pd.DataFrame(RECORDS), pa.table(pd.DataFrame(RECORDS))):
        assert clusters(resolver.predict(records)) == clusters(found.labels)


def test_one_and_two_threads_find_the_same(resolver, monkeypatch):
    monkeypatch.setattr(linkage_search, "ITEMS_PER_SHARD", 20)
    answers = []
    for threads in (1, 2):
        again = EntityResolver(**{**FAST, "n_jobs": threads}).fit(OTHERS, "person", id="id")
        done = again.resolve(RECORDS, id="id", posterior=True)
        answers.append((again.knowledge_.weights.values.tolist(), done.table(), done.pairs()))
    assert answers[0] == answers[1]


def test_what_was_saved_resolves_the_same(resolver, found, tmp_path):
    resolver.save(tmp_path / "m.fw")
    loaded = EntityResolver.load(tmp_path / "m.fw", rounds=8, n_jobs=1)
    assert loaded.resolve(RECORDS, id="id").table() == found.table()
    assert loaded.history_ == []


def test_a_resolver_can_be_cloned_and_knows_its_parameters():
    given = EntityResolver(rounds=3, random_state=5)
    assert clone(given).get_params() == given.get_params()
    assert given.get_params()["rounds"] == 3


def test_an_unfitted_resolver_says_so():
    for call in (
        EntityResolver().predict,
        lambda _: EntityResolver().save("m.fw"),
        lambda x: EntityResolver().update(x, x, "e"),
    ):
        with pytest.raises(NotFittedError, match="call fit, or load a model"):
            call(RECORDS)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidArgumentError, match=r"random_state .*must be a whole number"):
        EntityResolver(random_state=seed).fit(RECORDS, "person")


def test_columns_that_say_nothing_are_an_error():
    with pytest.raises(InvalidArgumentError, match="no column has anything to compare"):
        EntityResolver().fit([{"a": ""}, {"a": ""}])


def test_a_table_without_any_candidates_is_all_entities_of_one_record():
    records = [{"name": "Ann Lee"}, {"name": "Bob Ray"}, {"name": "Cyd Orr"}]
    assert len(set(EntityResolver(n_jobs=1).fit(records).predict(records))) == 3


def test_more_records_than_can_be_joined_are_refused_before_the_work(resolver, monkeypatch):
    monkeypatch.setattr(joins, "MOST_ITEMS", 10)
    monkeypatch.delattr(linking, "normalize")
    with pytest.raises(InvalidArgumentError, match="at most 10 can be joined"):
        resolver.resolve(RECORDS, id="id")


def test_kinds_of_columns_can_be_given():
    fields = [FieldSpec("town", "ignore")]
    learned = EntityResolver(**FAST, fields=fields).fit(RECORDS, "person", id="id", leave_out=["born"])
    kinds = {one.name: one.kind for one in learned.knowledge_.fields}
    assert kinds["town"] == "ignore"
    assert not {"person", "id", "born"} & set(kinds)


def test_constraints_hold_and_name_the_records_that_contradict(resolver, found):
    labels = found.labels.tolist()
    far = next(row for row in range(len(labels)) if labels[row] != labels[0])
    mate = next(row for row in range(1, len(labels)) if labels[row] == labels[0])
    limits = Constraints(must=np.array([[0, far]]), cannot=np.array([[0, mate]]))
    done = resolver.resolve(RECORDS, id="id", constraints=limits).labels
    assert done[0] == done[far] != done[mate]
    clash = Constraints(must=np.array([[0, far]]), cannot=np.array([[far, 0]]))
    with pytest.raises(
        InvalidArgumentError, match=f"records {RECORDS[far]['id']} and {RECORDS[0]['id']} must"
    ):
        resolver.resolve(RECORDS, id="id", constraints=clash)


def test_a_run_that_was_stopped_goes_on_from_its_checkpoint(resolver, found, tmp_path):
    def interrupt(progress):
        if progress.round == 3:
            raise KeyboardInterrupt

    how = {"id": "id", "checkpoint": tmp_path, "checkpoint_seconds": 0.0}
    broken = resolver.resolve(RECORDS, **how, watch=interrupt)
    assert broken.found.reason == "interrupted"
    assert (tmp_path / FILE).exists()
    rounds = []
    again = resolver.resolve(RECORDS, **how, watch=lambda progress: rounds.append(progress.round))
    assert again.table() == found.table()
    assert rounds[0] == 3
    with pytest.raises(DataFileError, match="another run"):
        resolver.resolve(RECORDS[:-1], **how)


def test_candidates_are_told_of_before_the_search(resolver):
    order = []
    resolver.resolve(
        RECORDS, linked=lambda data: order.append(len(data.candidates)), watch=lambda p: order.append(p)
    )
    assert order[0] > 0
    assert len(order) > 1


# labelled pairs


def labelled(records, count=60):
    """Pairs of records next to each other and some apart, and whether they are of one person."""
    rows = [(row, row + step) for step in (1, 7) for row in range(0, 2 * count, 2)][:count]
    return [
        (records[a]["id"], records[b]["id"], records[a]["person"] == records[b]["person"]) for a, b in rows
    ]


def test_labelled_pairs_alone_teach_a_resolver():
    pairs = labelled(OTHERS)
    assert {same for *_, same in pairs} == {True, False}
    learned = EntityResolver(**FAST).fit(without(OTHERS, "person"), pairs=pairs, id="id")
    assert learned.knowledge_.training["labelled_pairs"] == len(pairs)
    plain = EntityResolver(**FAST).fit(without(OTHERS, "person"), id="id")
    taught, untaught = (one.score(RECORDS, TRUTH) for one in (learned, plain))
    assert taught > 0.9
    assert taught >= untaught - 0.02


def test_labelled_pairs_and_entities_teach_together():
    learned = EntityResolver(**FAST).fit(OTHERS, "person", pairs=labelled(OTHERS), id="id")
    assert learned.knowledge_.training["labelled_pairs"] == 60
    assert learned.knowledge_.training["labelled"] == len(OTHERS)
    assert learned.score(RECORDS, TRUTH) > 0.95


def test_labelled_pairs_of_unknown_records_are_refused():
    with pytest.raises(InvalidArgumentError, match="no record has the id 'nobody'"):
        EntityResolver(**FAST).fit(OTHERS, pairs=[("nobody", OTHERS[0]["id"], True)], id="id")


# updates


@pytest.fixture(scope="module")
def updated(resolver, found):
    """The last records of the table as new ones below the others, whose entities are known."""
    old = people_table(40).slice(0, 80)
    new = people_table(40).slice(80)
    names = resolver.resolve(old, id="id").entity
    return old, new, names, resolver.update(new, old, names, id="id")


def test_an_update_finds_what_resolving_all_finds(updated, found):
    *_, done = updated
    assert clusters(done.labels) == clusters(found.labels)
    assert done.ids.to_pylist() == [record["id"] for record in RECORDS]


def test_an_update_keeps_the_names_of_entities(updated):
    old, _, names, done = updated
    assert done.entity.to_pylist()[: old.num_rows] == names.to_pylist()


def test_entities_of_old_records_may_be_a_column_and_have_any_names(resolver, updated):
    old, new, names, done = updated
    named = old.append_column("entity", pa.array([f"E{name}" for name in names.to_pylist()]))
    again = resolver.update(new, named, "entity", id="id")
    assert clusters(again.labels) == clusters(done.labels)
    assert again.entity.to_pylist()[: old.num_rows] == named.column("entity").to_pylist()


def test_what_an_update_weighed_has_a_confidence_and_the_rest_has_none(updated, resolver):
    old, new, names, done = updated
    some = resolver.update(new.slice(0, 1), old, names, id="id", posterior=True)
    there = ~np.isnan(some.confidence)
    assert np.flatnonzero(there).tolist() == some.weighed.tolist()
    assert 0 < there.sum() < len(there)
    assert there[-1]
    chances = some.confidence[there]
    assert ((chances > 0.0) & (chances <= 1.0)).all()
    weighed = {some.ids[row].as_py() for row in some.weighed.tolist()}
    assert {*some.pairs().column("id").to_pylist()} <= weighed
    assert some.entities().num_rows == some.n_entities
    assert done.weighed is not None


def test_confidence_is_that_of_each_record_whatever_items_stand_for_them(resolver, found):
    unsure = EntityResolver(**FAST)
    unsure.knowledge_ = replace(resolver.knowledge_, temperature=5.0)
    table = people_table(40)
    tied = Constraints(must=np.array([[0, 80], [2, 3]]))
    done = unsure.update(
        table.slice(80), table.slice(0, 80), found.entity.slice(0, 80), id="id", constraints=tied
    )
    unit = done.linked.unit
    assert len(np.unique(unit)) < len(unit)
    with Team(1) as team:
        chances = done.linked.walk.home_chances(5.0, team=team)
    np.testing.assert_allclose(done.confidence[done.weighed], chances[unit], rtol=1e-5)
    assert len(np.unique(chances)) > 3


def test_old_records_without_entity_are_placed_like_new_ones(updated, resolver):
    old, new, names, done = updated
    partly = [None if row == 4 else name for row, name in enumerate(names.to_pylist())]
    again = resolver.update(new, old, partly, id="id")
    assert clusters(again.labels) == clusters(done.labels)


def test_records_without_ids_are_numbered_the_old_ones_first(updated, resolver):
    old, new, names, done = updated
    again = resolver.update(new.drop_columns(["id"]), old.drop_columns(["id"]), names)
    assert again.ids.to_pylist() == list(range(len(RECORDS)))
    assert clusters(again.labels) == clusters(done.labels)


def test_a_new_record_with_an_id_that_is_there_already_is_refused(updated, resolver):
    old, _, names, _ = updated
    with pytest.raises(DataFileError, match="occur more than once"):
        resolver.update(old.slice(0, 1), old, names, id="id")


def not_a_template(items):
    return 3


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"templates": not_a_template}, {}, "templates of EntityResolver must be a list of functions"),
        ({"templates": ["x"]}, {}, "templates of EntityResolver must be a list of functions"),
        ({"templates": [not_a_template]}, {}, "'not_a_template' returned int, not a template"),
        ({"template_weights": 3}, {}, "template_weights of EntityResolver must be a dictionary or None"),
        ({"fields": {"born": "date"}}, {}, "fields of EntityResolver must be"),
        ({"rules": [3]}, {}, "rules of EntityResolver must be"),
        ({"rules": []}, {}, "give one at least"),
        ({"rules": ["nearest 5 of born"]}, {}, "rule 'nearest 5 of born': .* 'born' is of kind date"),
        ({"about": 3}, {}, "about of EntityResolver must be a string or a list of texts"),
        ({"context": "no"}, {}, "context of EntityResolver must be True or False"),
        ({"rounds": 1.5}, {}, "rounds of EntityResolver must be a whole number or None"),
        ({"n_jobs": "all"}, {}, "n_jobs of EntityResolver must be a whole number or None"),
        ({}, {"entity": 3}, "entities must be the name of a column, or a list"),
        ({}, {"entity": [1, "a"] * 65}, "entities must be the name of a column, or a list"),
        ({}, {"entity": [[1]] * 130}, "entities must be the name of a column, or a list"),
        ({}, {"id": "number"}, "there is no column 'number'; there are id"),
        ({}, {"leave_out": "id"}, "leave_out of EntityResolver.fit must be a list of texts"),
        ({}, {"leave_out": ["ident"]}, "there is no column 'ident'"),
        ({}, {"constraints": [(1, 2)]}, "constraints of EntityResolver.fit must be of type Constraints"),
        ({}, {"mixer": 3}, "mixer of EntityResolver.fit must be of type Mixer or None"),
    ],
)
def test_parameters_and_arguments_of_wrong_types_are_named(parameters, arguments, message):
    with pytest.raises(FactorwiseError, match=message):
        EntityResolver(**FAST | parameters).fit(OTHERS, **{"entity": "person", "id": "id"} | arguments)
