"""Answers without labels: right where the table says enough, safe and with a warning where it does not."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from factorwise import EntityResolver
from factorwise.apps.resolution.constraints import Constraints
from factorwise.errors import ModelFileError, ShapeError
from factorwise.io.models.files import read_model, write_model
from factorwise.metrics.clustering import b_cubed
from unlabelled_cases import (
    coded_products,
    coded_variants,
    discs,
    editions,
    firms,
    households,
    inventors,
    mentions,
    misspelled_items,
    persons,
    products,
    universities,
    word,
)


def fitted(table, **more):
    options = {name: more.pop(name) for name in ("about",) if name in more}
    return EntityResolver(n_jobs=1, **options).fit(table, **more)


PEOPLE, WHO = persons(250)
RESOLVER = fitted(PEOPLE)
REPORT = RESOLVER.knowledge_.unlabelled.report


def test_persons_are_found_and_the_estimate_is_near():
    found = b_cubed(WHO, RESOLVER.predict(PEOPLE))
    assert found.f1 > 0.97
    assert REPORT["about"] == "first_name + surname"
    assert abs(REPORT["precision"] - found.precision) < 0.1
    assert abs(REPORT["recall"] - found.recall) < 0.1
    assert REPORT["warnings"] == []


def test_mentions_are_persons_and_not_papers():
    table, truth = mentions(120, 200)
    resolver = fitted(table)
    model = resolver.knowledge_.unlabelled
    assert "paper" in model.contexts
    labels = resolver.predict(table)
    assert b_cubed(truth, labels).f1 > 0.97
    papers = np.unique(table["paper"].to_pylist(), return_inverse=True)[1]
    assert b_cubed(papers, labels).f1 < 0.5


@pytest.mark.parametrize("ending", ["", " ({year})"])
def test_two_shops_have_a_thing_once_each(ending):
    table, truth = products(200, ending=ending)
    resolver = fitted(table)
    model = resolver.knowledge_.unlabelled
    assert (model.source, model.one_per_source) == ("source", True)
    labels = resolver.predict(table)
    assert b_cubed(truth, labels).f1 > 0.95
    both = labels * 2 + (np.array(table["source"].to_pylist()) == "b")
    assert len(np.unique(both)) == len(both)


@pytest.mark.parametrize("case", [coded_products, coded_variants])
def test_codes_that_are_written_in_two_ways_are_one(case):
    table, truth = case(200)
    assert b_cubed(truth, fitted(table).predict(table)).f1 > 0.97


@pytest.mark.parametrize(
    ("case", "least"), [(universities, 0.9), (misspelled_items, 0.97), (inventors, 0.93)]
)
def test_one_column_says_how_its_values_vary(case, least, tmp_path):
    table, truth = case(150)
    resolver = fitted(table)
    report = resolver.knowledge_.unlabelled.report
    assert b_cubed(truth, resolver.predict(table)).f1 > least
    resolver.save(tmp_path / "m.fw")
    assert "namesakes cannot be seen" in report["warnings"][0]


def test_usual_titles_are_not_joined_where_few_records_are_doubled():
    table, truth = discs(400)
    resolver = fitted(table)
    assert b_cubed(truth, resolver.predict(table)).f1 > 0.98
    assert "by chance" in resolver.knowledge_.unlabelled.report["warnings"][0]


def test_namesakes_whose_other_columns_differ_are_not_joined():
    table, truth = firms(150)
    resolver = fitted(table)
    found = b_cubed(truth, resolver.predict(table))
    report = resolver.knowledge_.unlabelled.report
    assert found.precision > 0.95
    assert found.recall > 0.95
    assert report["chance"] > 0.2
    assert "by chance" in report["warnings"][0]


@pytest.mark.parametrize("case", [households, editions])
def test_entities_that_share_much_are_not_joined(case):
    table, truth = case(150)
    found = b_cubed(truth, fitted(table).predict(table))
    assert found.precision > 0.95
    assert found.recall > 0.95


def test_columns_that_say_nothing_do_not_split_what_is_equal():
    rng = np.random.default_rng(5)
    names = np.repeat([f"{word(rng)} {word(rng)}" for _ in range(150)], 2).tolist()
    table = pa.table({"company": names, "status": rng.choice(["open", "closed", "new"], 300).tolist()})
    resolver = fitted(table)
    assert b_cubed(np.repeat(np.arange(150), 2), resolver.predict(table)).f1 > 0.97
    assert "does not name the entity" in resolver.knowledge_.unlabelled.report["warnings"][0]


def test_repeated_records_of_a_shop_are_one_record():
    table, truth = products(150)
    times = np.random.default_rng(1).permutation(np.repeat(np.arange(len(truth)), 4))
    resolver = fitted(table.take(times))
    assert resolver.knowledge_.unlabelled.one_per_source
    assert b_cubed(truth[times], resolver.predict(table.take(times))).f1 > 0.95


def test_a_shop_that_has_things_twice_is_seen():
    table, truth = products(200)
    again = np.flatnonzero((np.array(table["source"].to_pylist()) == "a") & (truth % 3 == 0))
    rows = np.append(np.arange(len(truth)), again)
    resolver = fitted(table.take(rows))
    assert not resolver.knowledge_.unlabelled.one_per_source
    assert b_cubed(truth[rows], resolver.predict(table.take(rows))).f1 > 0.95


def test_a_user_may_say_that_each_source_has_an_entity_once():
    table, _ = persons(60)
    sources = np.tile([0, 1], 60)
    limits = Constraints(sources=sources, one_per_source=True)
    model = fitted(table, constraints=limits).knowledge_.unlabelled
    assert (model.one_per_source, model.source) == (True, None)


def test_a_table_whose_headers_say_nothing_is_warned_about():
    plain = PEOPLE.rename_columns(["a", "b", "c", "d"])
    assert "no header says" in fitted(plain).knowledge_.unlabelled.report["warnings"][-1]


def test_names_alone_are_enough_if_they_are_rare():
    table = PEOPLE.select(["first_name", "surname"])
    resolver = fitted(table)
    assert b_cubed(WHO, resolver.predict(table)).f1 > 0.85
    assert "namesakes cannot be seen" in resolver.knowledge_.unlabelled.report["warnings"][0]


def test_thin_evidence_gives_the_safe_rule_and_a_warning():
    rng = np.random.default_rng(3)
    names = [" ".join(word(rng) for _ in range(3)) for _ in range(100)]
    names[1] = names[0]
    table = pa.table({"name": names, "colour": rng.choice(["red", "blue"], 100).tolist()})
    resolver = fitted(table)
    model = resolver.knowledge_.unlabelled
    assert model.is_safe
    assert "too few to measure" in model.report["warnings"][0]
    labels = resolver.predict(table)
    assert labels[0] == labels[1]
    assert len(np.unique(labels)) == 99
    assert model.report["recall"] < 1.0 or model.report["entities"] == 99


def test_generic_titles_are_not_joined_if_everything_else_differs():
    rng = np.random.default_rng(4)
    rows = []
    for _ in range(150):
        title, artist = " ".join(word(rng) for _ in range(3)), word(rng, 4)
        rows += [{"title": title, "artist": artist}] * 2
    for name in [word(rng, 4) for _ in range(40)]:
        rows += [
            {"title": "greatest hits", "artist": name},
            {"title": f"{name} greatest hits", "artist": name},
        ]
    table = pa.Table.from_pylist(rows)
    labels = fitted(table).predict(table)
    generic = [k for k, row in enumerate(rows) if row["title"] == "greatest hits"]
    assert len(np.unique(labels[generic])) > 35


def test_two_records_and_one_are_resolved():
    for count in (1, 2, 5):
        table = PEOPLE.take(np.arange(count) * 2)
        assert len(np.unique(fitted(table).predict(table))) == count


# what an answer comes with


def test_explanations_add_up_to_the_score():
    explainer = RESOLVER.explain(PEOPLE)
    together = explainer.pair(0, 1)
    scores = dict(explainer.placing(0, np.array([1])).linked)
    assert together.candidates
    assert together.linked_score == pytest.approx(scores[1], rel=1e-4)
    assert [one.form for one in together.weighed[:2]] == ["identity", "evidence"]
    assert explainer.pair(0, 400).linked_score < 0.0


def test_the_model_scores_clusterings_as_the_walk_does():
    found = RESOLVER.resolve(PEOPLE)
    from factorwise.world.partition import Partition

    score = RESOLVER.model_.score(Partition.from_keys(found.labels))
    assert score == pytest.approx(found.found.score, rel=1e-4)


def test_posterior_and_updates_work():
    found = RESOLVER.resolve(PEOPLE, posterior=True)
    assert found.posterior is not None
    assert 0.9 < float(found.confidence.mean()) <= 1.0
    old, new = PEOPLE.slice(0, 490), PEOPLE.slice(490)
    labels = RESOLVER.update(new, old, [str(k) for k in WHO[:490]]).labels
    assert b_cubed(WHO, labels).f1 > 0.97


def test_a_model_file_says_the_same(tmp_path):
    RESOLVER.save(tmp_path / "m.fw")
    again = EntityResolver.load(tmp_path / "m.fw", n_jobs=1)
    assert (again.predict(PEOPLE) == RESOLVER.predict(PEOPLE)).all()
    assert again.knowledge_.unlabelled.report == REPORT


@pytest.mark.parametrize("part", ["about", "prior", "evidence", "contexts"])
def test_damaged_model_files_are_refused(tmp_path, part):
    RESOLVER.save(tmp_path / "m.fw")
    file = read_model(tmp_path / "m.fw", "resolution")
    saved = file.metadata["unlabelled"]
    if part == "about":
        saved["about"]["form"] = "thing"
    elif part == "prior":
        saved["prior"]["shifts"] = [[0.0]]
    elif part == "evidence":
        saved["evidence"]["sums"] = saved["evidence"]["sums"][::-1]
    else:
        saved["contexts"] = ["nothing"]
    write_model(tmp_path / "m.fw", replace(file, metadata=file.metadata))
    with pytest.raises(ModelFileError, match="do not fit together"):
        EntityResolver.load(tmp_path / "m.fw")


def test_sources_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="500 records need a source each, not 2"):
        fitted(PEOPLE, constraints=Constraints(sources=["a", "b"]))
