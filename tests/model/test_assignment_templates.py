import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignment_cases import BIT, CASES, STATIC, TAG, all_worlds
from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError, UnknownLabelError, WeightError
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import DynamicTemplate, TupleTemplate
from factorwise.model.labels.library import (
    Bias,
    FeatureTransitions,
    SkipEdges,
    Tables,
    Transitions,
    UnaryFeatures,
    WeightedTables,
)
from factorwise.model.model import Model
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment

MODELS = {name: case() for name, case in CASES.items()}


def random_diff(world, rng, count):
    movable = world.variables.hidden
    chosen = rng.choice(movable, size=min(count, len(movable)), replace=False)
    new = [int(rng.integers(world.variables.cardinality[v])) for v in chosen]
    return world.relabel(chosen.tolist(), new)


@pytest.mark.parametrize("name", MODELS)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 4))
@settings(deadline=None, max_examples=60)
def test_difference_equals_statistics_after_minus_before(name, seed, count):
    variables, model = MODELS[name]
    rng = np.random.default_rng(seed)
    world = Assignment.uniform(variables, seed)
    diff = random_diff(world, rng, count)
    after = world.after(diff)
    for template in model.templates:
        brute = template.statistics(after).to_dense(template.size) - template.statistics(world).to_dense(
            template.size
        )
        np.testing.assert_allclose(
            template.difference(world, diff).to_dense(template.size), brute, atol=1e-12
        )
        now, then = template.constant(world), template.constant(after)
        gain = template.constant_gain(world, diff)
        if np.isfinite(now) and np.isfinite(then):
            assert gain == pytest.approx(then - now, abs=1e-12)
        elif np.isfinite(now):
            assert gain == -np.inf
        elif np.isfinite(then):
            assert gain == np.inf


def dense(template, world):
    return template.statistics(world).to_dense(template.size)


def tag_world(labels, observed=None):
    column = Column.hidden("tag", TAG, len(labels))
    return column, Assignment.from_labels(Variables([column]), {"tag": labels})


def test_bias_counts_labels_and_names_them():
    column, world = tag_world(["N", "O", "N"])
    bias = Bias(column)
    assert dense(bias, world).tolist() == [2, 0, 1]
    assert [bias.weight_name(i) for i in range(3)] == ["tag bias: N", "tag bias: V", "tag bias: O"]


def test_unary_features_cross_features_with_labels():
    column, world = tag_world(["V", "O"])
    template = UnaryFeatures(column, Features.from_rows([["caps"], {"caps": 2.0, "len": 0.5}]))
    assert dense(template, world).reshape(2, 3).tolist() == [[0, 1, 2], [0, 0, 0.5]]
    assert template.weight_name(4) == "tag features: len with V"


def test_transitions_link_neighbors_only_within_their_chain():
    column, world = tag_world(["N", "V", "V", "O"])
    whole, split = Transitions(column), Transitions(column, chains=[0, 2, 4])
    assert dense(whole, world).reshape(3, 3).tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert dense(split, world).reshape(3, 3).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert whole.weight_name(5) == "tag transitions: V to O"


def test_feature_transitions_cross_features_with_pairs_of_labels():
    column, world = tag_world(["N", "V", "O"])
    template = FeatureTransitions(column, Features.from_rows([["comma"], {"gap": 3.0}]))
    counted = dense(template, world).reshape(2, 3, 3)
    assert counted[0, 0, 1] == 1.0
    assert counted[1, 1, 2] == 3.0
    assert counted.sum() == 4.0
    assert template.weight_name(9 + 5) == "tag feature transitions: gap with V to O"


def test_skip_edges_can_count_agreement_only():
    column, world = tag_world(["N", "V", "N", "N"])
    edges = SkipEdges(column, [[0, 2], [0, 3], [1, 3]], same_label=True)
    assert dense(edges, world).tolist() == [2.0]
    assert edges.weight_name(0) == "tag skip edges: same label"
    assert SkipEdges(column, [[0, 2]]).weight_name(0) == "tag skip edges: N to N"


def test_weighted_tables_count_joint_settings():
    _, world = tag_world(["N", "V", "O"])
    template = WeightedTables(world.variables, [[0, 1, 2], [2, 1, 0]])
    counted = dense(template, world).reshape(3, 3, 3)
    assert counted[0, 1, 2] == counted[2, 1, 0] == 1
    assert counted.sum() == 2
    assert template.weight_name(5) == "weighted tables: N, V, O"


def test_tables_score_without_weights():
    _, world = tag_world(["N", "V"])
    table = np.arange(9.0).reshape(3, 3)
    assert Tables(world.variables, [[0, 1], [1, 0]], table).constant(world) == 1.0 + 3.0
    stacked = Tables(world.variables, [[0, 1], [1, 0]], [table, 10 * table], which=[1, 0])
    assert stacked.constant(world) == 10.0 + 3.0


def test_cardinality_is_one_hot_up_to_its_last_bucket():
    column, world = tag_world(["N", "N", "N", "V", "O"])
    template = Cardinality(column, "N", [[0, 1, 2], [2, 3], [3, 4]], maximum=2)
    assert dense(template, world).tolist() == [1, 1, 1]
    assert template.weight_name(1) == "tag count of N: 1"
    assert template.weight_name(2) == "tag count of N: 2 or more"


def test_cardinality_takes_group_numbers_and_statistics_of_the_count():
    column, world = tag_world(["N", "N", "V", "N", "N"])
    squares = Cardinality(column, "N", np.array([7, 7, 7, -1, 3]), statistics_of=lambda n: (n, n * n))
    assert dense(squares, world).tolist() == [3, 5]
    table = Cardinality(column, "N", [[0, 1]], statistics_of=[0.0, 1.0, 5.0])
    assert dense(table, world).tolist() == [5.0]
    assert squares.weight_name(1) == "tag count of N: statistic 1"


def test_a_million_variables_are_scored_at_once():
    size = 1_000_000
    column = Column.hidden("tag", TAG, size)
    world = Assignment.uniform(Variables([column]), 0)
    model = Model([Bias(column), Transitions(column), Cardinality(column, "V", np.arange(size) // 10)])
    counted = model.statistics(world)
    assert counted.value[:3].sum() == size
    assert counted.value[3:12].sum() == size - 1
    assert counted.value[12:].sum() == size / 10


def test_templates_follow_their_column_to_another_place():
    column, world = tag_world(["N", "V"])
    bit = Column.hidden("bit", BIT, 3)
    moved = Assignment.from_labels(Variables([bit, column]), {"tag": ["N", "V"]})
    template = Transitions(column)
    np.testing.assert_array_equal(dense(template, world), dense(template, moved))
    diff = moved.relabel([3, 0], [2, 1])
    np.testing.assert_array_equal(
        template.difference(moved, diff).to_dense(9),
        dense(template, moved.after(diff)) - dense(template, moved),
    )


BAD = {
    "features of the wrong length": (
        lambda column, variables: UnaryFeatures(column, Features.from_dense(np.ones((2, 1)))),
        ShapeError,
        "features for 2 rows, but there are 3",
    ),
    "a table of the wrong shape": (
        lambda column, variables: Tables(variables, [[0, 1]], np.zeros((2, 3))),
        ShapeError,
        r"give one table of shape \(3, 3\)",
    ),
    "a table with nan": (
        lambda column, variables: Tables(variables, [[0, 1]], np.full((3, 3), np.nan)),
        InvalidArgumentError,
        "or -inf to forbid",
    ),
    "a variable twice": (
        lambda column, variables: Transitions(column, pairs=[[1, 1]]),
        InvalidArgumentError,
        "names a variable twice",
    ),
    "a row that does not exist": (
        lambda column, variables: SkipEdges(column, [[0, 3]]),
        InvalidArgumentError,
        "rows 0 to 2",
    ),
    "chains that do not end at the last row": (
        lambda column, variables: Transitions(column, chains=[0, 2]),
        InvalidArgumentError,
        "must rise from 0 to 3",
    ),
    "a label outside the domain": (
        lambda column, variables: Cardinality(column, "X"),
        UnknownLabelError,
        "domain.extended",
    ),
    "scopes of mixed cardinality": (
        lambda column, variables: WeightedTables(variables, [[0, 1], [0, 3]]),
        ShapeError,
        "one template for each shape",
    ),
    "an empty group": (
        lambda column, variables: Cardinality(column, "N", [[0], []]),
        InvalidArgumentError,
        "at least one row in each group",
    ),
    "statistics of a count that are ragged": (
        lambda column, variables: Cardinality(column, "N", statistics_of=lambda n: (1.0,) * n),
        TemplateError,
        "same number of values",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_templates_are_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    column = Column.hidden("tag", TAG, 3)
    with pytest.raises(error, match=message):
        build(column, Variables([column, Column.hidden("bit", BIT, 1)]))


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(weight):
    column = Column.hidden("tag", TAG, 3)
    with pytest.raises(WeightError, match="weights must be finite numbers"):
        Model([Bias(column)], [0.0, weight, 0.0])


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((1.0, 2.0), "2 statistics for factor 0 over variables .* but it has 1"),
        (1.0, "float 1.0 .* return a tuple of 1 numbers"),
        ((None,), "return a tuple of 1 numbers"),
        ((float("nan"),), "statistics must be finite numbers"),
    ],
)
def test_a_function_that_returns_something_else_is_named(result, message):
    _, world = tag_world(["N", "V"])
    template = TupleTemplate("mine", [[0, 1]], lambda a, b: result, ["one"])
    with pytest.raises(TemplateError, match=f"template 'mine' .*{message}"):
        template.statistics(world)


def test_a_dynamic_template_that_writes_too_many_keys_is_told_to_raise_the_limit():
    _, world = tag_world(["N", "V"])

    def touched(values, variable, out):
        for row in range(5):
            out[row, 0] = row
        return 5

    template = DynamicTemplate(
        "mine", touched, lambda values, key: (1.0,), ["one"], key_width=1, max_touched=4
    )
    with pytest.raises(TemplateError, match="raise max_touched"):
        template.statistics(world)
    lying = DynamicTemplate("mine", lambda v, x, out: 9, lambda v, k: (1.0,), ["one"], max_touched=4)
    with pytest.raises(TemplateError, match="0 to max_touched = 4"):
        lying.statistics(world)


def test_a_world_with_another_column_is_refused():
    column, _ = tag_world(["N", "V"])
    _, other = tag_world(["N", "V", "O"])
    with pytest.raises(InvalidArgumentError, match="build the template from the world's column"):
        Bias(column).statistics(other)


@pytest.mark.parametrize("name", STATIC)
def test_every_weight_has_a_name_of_its_own(name):
    _, model = MODELS[name]
    names = [model.weight_name(index) for index in range(model.blocks.size)]
    assert len(set(names)) == len(names)


def test_enumerated_worlds_keep_what_is_observed():
    variables, _ = MODELS["mixed"]
    assert len(all_worlds(variables)) == 3 * 3 * 2 * 2
