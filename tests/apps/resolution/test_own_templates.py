"""Templates of one's own in a resolver: made of the records, learned, explained, saved, searched with."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from factorwise.apps.resolution import Constraints, EntityResolver, RecordItems
from factorwise.apps.resolution.merge_odds import DEFAULT_STRENGTH, MergeOdds, tree_of_walk
from factorwise.apps.resolution.resolving import draw_posterior
from factorwise.distributed import LocalExecutor
from factorwise.errors import DataFileError, InvalidArgumentError, ShapeError, TemplateError
from factorwise.metrics.clustering import b_cubed
from factorwise.model.templates import ClusterSize, PairTemplate, TallyTemplate
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from record_cases import people

GROUPS = np.array(["0", "A", "B", "AB"])
FAST = {"steps": 10, "rounds": 6, "n_jobs": 1}


def with_groups(count, seed):
    """People with little to tell them by, and with a blood group that is hardly ever wrong."""
    rng = np.random.default_rng(seed)
    records = people(count)
    persons = {record["person"]: rng.choice(GROUPS) for record in records}
    for record in records:
        record["born"] = record["email"] = record["town"] = ""
        record["blood"] = str(persons[record["person"]] if rng.random() < 0.97 else rng.choice(GROUPS))
    return pa.Table.from_pylist(records)


def present(count):
    return count > 0


def beyond_one(total, size):
    return max(0.0, total - 1.0)


def one_blood_group(records):
    """A person has one blood group."""
    return TallyTemplate("blood", records.bags("blood"), present, beyond_one, ["further groups"])


def differ(a, b):
    return (a.group != b.group,)


def blood_of_pairs(records):
    """The same by a function of two records."""
    return PairTemplate("pairs", Fields(group=records.codes("blood")), differ, ["different groups"])


def other_items(records):
    """A template of another number of items."""
    return PairTemplate("pairs", Fields(group=[0, 1, 2]), differ, ["different groups"])


def named_as_a_constraint(records):
    """A template with the name of a constraint."""
    return TallyTemplate("cannot link", records.bags("blood"), present, beyond_one, ["further groups"])


HIDDEN = {"id": "id", "leave_out": ["blood"]}
TRAIN, TEST = with_groups(240, 1), with_groups(300, 2).slice(240)
TRUTH = TEST.column("person").to_pylist()


@pytest.fixture(scope="module")
def resolver():
    return EntityResolver(templates=[one_blood_group, blood_of_pairs], **FAST).fit(TRAIN, "person", **HIDDEN)


def test_their_weights_are_learned_and_make_the_answer_better(resolver):
    plain = EntityResolver(**FAST).fit(TRAIN, "person", **HIDDEN)
    further = resolver.knowledge_.further
    assert set(further) == {"blood", "pairs"}
    held_out = resolver.knowledge_.training["methods"]
    assert held_out[f"{resolver.knowledge_.training['method']}, with your templates"] > max(
        f1 for method, f1 in held_out.items() if "templates" not in method
    )
    assert sum(float(values[0]) for values in further.values()) < -0.5
    with_blood, without = (
        b_cubed(TRUTH, one.resolve(TEST, id="id").labels.tolist()).f1 for one in (resolver, plain)
    )
    assert with_blood > without + 0.01


def test_the_model_is_an_ordinary_one_whose_score_the_search_reports(resolver):
    model = resolver.model_
    assert resolver.knowledge_.context is not None  # whose levels are among those of the links
    assert [template.name for template in model.templates] == ["links", "blood", "pairs"]
    assert model.blocks.size == len(model.weights)
    assert model.weight_name(model.blocks.size - 1).startswith("pairs")
    found = resolver.resolve(TRAIN, id="id")
    score = model.score(Partition.from_keys(found.labels))
    assert found.found.score == pytest.approx(score, rel=1e-4)
    assert found.linked.walk.score == pytest.approx(score, rel=1e-4)


def test_they_are_seen_in_explanations_whose_gain_is_that_of_the_model(resolver):
    explainer, model, n = resolver.explain(TRAIN, id="id"), resolver.model_, TRAIN.num_rows
    blood = TRAIN.column("blood").to_pylist()
    different = next(k for k in range(1, n) if blood[k] != blood[0])
    pair = explainer.pair(0, different)
    assert {name.split(":")[0] for name, _ in pair.further} == {"blood", "pairs"}
    alone = np.arange(n)
    joined = np.where(alone == different, 0, alone)
    gain = model.score(Partition.from_keys(joined)) - model.score(Partition.from_keys(alone))
    assert pair.gain == pytest.approx(gain, abs=1e-4)
    members = np.array([1, 2, 3, different])
    apart = alone.copy()
    apart[members] = 1
    joined = np.where(alone == 0, 1, apart)
    gain = model.score(Partition.from_keys(joined)) - model.score(Partition.from_keys(apart))
    assert explainer.placing(0, members).gain == pytest.approx(gain, abs=1e-4)


def test_a_saved_model_wants_the_same_templates_again(resolver, tmp_path):
    resolver.save(tmp_path / "m.fw")
    again = EntityResolver.load(tmp_path / "m.fw", templates=[blood_of_pairs, one_blood_group], **FAST)
    with pytest.raises(NotFittedError, match="resolve some first"):
        again.model_  # noqa: B018
    assert again.resolve(TEST, id="id").labels.tolist() == resolver.resolve(TEST, id="id").labels.tolist()
    assert len(again.model_.templates) == 3
    with pytest.raises(InvalidArgumentError, match="the same functions as when it was fitted"):
        EntityResolver.load(tmp_path / "m.fw", **FAST).resolve(TEST, id="id")


def test_without_labels_they_have_the_weights_that_are_given():
    given = {"blood": [-50.0]}
    made = EntityResolver(templates=[one_blood_group], template_weights=given, **FAST).fit(TRAIN, **HIDDEN)
    found = made.resolve(TEST, id="id")
    blood = TEST.column("blood").to_pylist()
    for label in np.unique(found.labels):
        assert len({blood[row] for row in np.flatnonzero(found.labels == label)}) == 1
    zero = EntityResolver(templates=[one_blood_group], **FAST).fit(TRAIN, **HIDDEN)
    assert zero.knowledge_.further["blood"].tolist() == [0.0]


def test_records_that_must_be_together_are_one_item(resolver):
    must = Constraints(must=np.array([[0, 5], [5, 7]]))
    found = resolver.resolve(TEST, id="id", constraints=must)
    assert len({int(found.labels[row]) for row in (0, 5, 7)}) == 1
    table = pa.table({"color": ["red", None, "red", "blue", ""]})
    items = RecordItems(table, np.array([0, 0, 0, 1, 1], np.int32), 2)
    assert items.values("color") == ["red", "blue"]
    assert items.codes("color").tolist() == [0, 1]
    assert [items.bags("color").of(item) for item in (0, 1)] == [{0: 2}, {1: 1}]
    lists = RecordItems(pa.table({"c": [["a", "b"], None, ["b"]]}), np.array([0, 1, 1], np.int32), 2)
    assert [lists.bags("c").of(item) for item in (0, 1)] == [{0: 1, 1: 1}, {1: 1}]
    assert lists.codes("c").tolist() == [0, 1]
    missing = RecordItems(pa.table({"c": ["", "x", "y"]}), np.array([0, 0, 1], np.int32), 2)
    assert (missing.values("c"), missing.codes("c").tolist()) == (["x", "y"], [0, 1])


def test_records_that_are_equal_but_for_what_templates_look_at_are_told_apart():
    """Two hundred people, two names, four records each; but for the blood groups nothing tells them apart."""
    rows = [
        {"id": f"{k}-{n}", "name": ["Ann Lee", "Bo Ray"][k % 2], "blood": str(GROUPS[k % 4]), "who": k % 4}
        for k in range(100)
        for n in range(2)
    ]
    made = EntityResolver(templates=[one_blood_group], template_weights={"blood": [-1e6]}, **FAST)
    labels = made.fit(rows, id="id", leave_out=["blood", "who"]).resolve(rows, id="id").labels
    for label in np.unique(labels):
        assert len({rows[row]["blood"] for row in np.flatnonzero(labels == label)}) == 1


def test_another_weight_of_a_template_is_another_run(tmp_path):
    given = {"templates": [one_blood_group], **FAST}
    one, other = (
        EntityResolver(template_weights={"blood": [weight]}, **given).fit(TRAIN, **HIDDEN)
        for weight in (0.0, -50.0)
    )
    one.resolve(TEST, id="id", checkpoint=tmp_path, checkpoint_seconds=0.0)
    with pytest.raises(DataFileError, match="another"):
        other.resolve(TEST, id="id", checkpoint=tmp_path)


def test_new_records_are_placed_with_them(resolver):
    old = resolver.resolve(TRAIN, id="id")
    ids = pa.array([f"new {row}" for row in range(TEST.num_rows)])
    new = TEST.set_column(TEST.column_names.index("id"), "id", ids)
    placed = resolver.update(new, TRAIN, old.entity, id="id")
    assert b_cubed(TRUTH, placed.labels[TRAIN.num_rows :].tolist()).f1 > 0.8


def test_an_executor_finds_the_same(resolver):
    here, there = (
        resolver.resolve(TEST, id="id", executor=executor).labels.tolist()
        for executor in (None, LocalExecutor(2))
    )
    assert here == there


@pytest.mark.parametrize(
    ("templates", "weights", "error", "message"),
    [
        ([lambda records: 3], None, TemplateError, "returned int, not a template"),
        ([one_blood_group, one_blood_group], None, TemplateError, "a name of its own"),
        ([lambda records: records.bags("bloot")], None, InvalidArgumentError, "asks for column 'bloot'"),
        ([one_blood_group], {"bloot": [1.0]}, InvalidArgumentError, "the templates are"),
        ([one_blood_group], {"blood": [1.0, 2.0]}, ShapeError, "needs 1 finite weights"),
        ([one_blood_group], {"blood": [np.nan]}, ShapeError, "needs 1 finite weights"),
        ([other_items], None, ShapeError, "has fields for 3 items, but the world has"),
        ([named_as_a_constraint], None, TemplateError, "a name of its own"),
    ],
)
def test_what_does_not_fit_is_refused(templates, weights, error, message):
    made = EntityResolver(templates=templates, template_weights=weights, **FAST)
    with pytest.raises(error, match=message):
        made.fit(TRAIN, "person", **HIDDEN)


def test_they_act_on_the_draws(resolver):
    """Around one clustering: odds of merges by what pairs of records of different blood groups add."""
    found = resolver.resolve(TEST, id="id")
    walk, unit = found.linked.walk, found.linked.unit
    blood = np.array(TEST.column("blood").to_pylist())
    differ = blood[:, None] != blood
    chances, apart = {}, {}
    for weight in (0.0, -0.5, 0.5, -1e3, 1e3):
        walk.further.weights = [0.0, weight]
        tree = tree_of_walk(walk)
        chances[weight] = MergeOdds().chances(tree)[tree.n_items : tree.n_inner]
        drawn = draw_posterior(walk, MergeOdds(), seed=1).labels[:, unit]
        apart[weight] = np.mean([(differ & (labels[:, None] == labels)).sum() for labels in drawn])
    gain = tree.gains["pairs"][tree.n_items : tree.n_inner] / 1e3
    assert gain.max() >= 1.0
    odds = {weight: chance / (1.0 - chance) for weight, chance in chances.items() if abs(weight) < 1.0}
    for weight in (-0.5, 0.5):
        np.testing.assert_allclose(odds[weight] / odds[0.0], np.exp(DEFAULT_STRENGTH * weight * gain))
    assert (chances[-1e3][gain > 0.0] < 1e-9).all()
    assert (chances[1e3][gain > 0.0] > 1.0 - 1e-9).all()
    assert apart[-1e3] == 0.0 < apart[-0.5] < apart[0.0] < apart[0.5] < apart[1e3]


def test_how_much_they_count_in_the_draws_is_learned(resolver):
    strengths = resolver.knowledge_.merges.strengths
    assert set(strengths) == {"blood", "pairs"}
    assert all(strength >= 0.0 for strength in strengths.values())
    assert resolver.knowledge_.training["reliability"]
    found = resolver.resolve(TEST, id="id", posterior=True)
    blood, unit = np.array(TEST.column("blood").to_pylist()), found.linked.unit
    odds = resolver.knowledge_.merges
    free = odds._replace(strengths=dict.fromkeys(odds.strengths, 0.0))
    without = draw_posterior(found.linked.walk, free, seed=0)

    def agreeing(posterior):
        shares = [
            np.mean([len(set(blood[labels == label])) == 1 for label in np.unique(labels)])
            for labels in posterior.labels[:, unit]
        ]
        return np.mean(shares)

    assert agreeing(found.posterior) > agreeing(without)


def test_what_is_known_for_certain_holds_in_every_draw(resolver):
    must, cannot = np.array([[0, 5], [5, 7]]), np.array([[1, 2], [3, 4], [0, 8]])
    sources = (np.arange(TEST.num_rows) % 7).astype(np.int32)
    sources[[0, 5, 7]] = [0, 1, 2]
    limits = Constraints(must=must, cannot=cannot, sources=sources, one_per_source=True)
    found = resolver.resolve(TEST, id="id", constraints=limits, posterior=True)
    for labels in found.posterior.labels[:, found.linked.unit]:
        assert len({int(labels[row]) for row in (0, 5, 7)}) == 1
        assert (labels[cannot[:, 0]] != labels[cannot[:, 1]]).all()
        assert len(set(zip(labels.tolist(), sources.tolist(), strict=True))) == TEST.num_rows


def test_the_size_of_entities_may_be_a_template():
    made = EntityResolver(templates=[lambda records: ClusterSize("sizes")], **FAST)
    assert len(made.fit(TRAIN, "person", **HIDDEN).knowledge_.further["sizes"]) == 2
