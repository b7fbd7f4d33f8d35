import time

import numpy as np
import pytest

from assignment_cases import BIT, STATIC, TAG, all_worlds, runs
from factorwise.errors import InvalidArgumentError, TreewidthError
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import TupleTemplate
from factorwise.model.labels.library import Bias, Transitions
from factorwise.model.model import Model
from factorwise.model.unrolling import unroll
from factorwise.variables.domain import Domain
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment


@pytest.mark.parametrize("name", STATIC)
def test_the_graph_scores_every_world_as_the_model_does(name):
    variables, model = STATIC[name]()
    graph = unroll(model, variables)
    for world in all_worlds(variables):
        assert graph.score(world.values) == pytest.approx(model.score(world), abs=1e-12)


@pytest.mark.parametrize("name", ["mixed", "counts"])
def test_the_graph_forbids_what_contradicts_the_observations(name):
    variables, model = STATIC[name]()
    graph, open_graph = unroll(model, variables), unroll(model, variables, clamp=False)
    world = all_worlds(variables)[0]
    observed = int(np.flatnonzero(variables.observed)[0])
    values = world.values.copy()
    values[observed] = (values[observed] + 1) % variables.cardinality[observed]
    assert graph.score(values) == -np.inf
    assert open_graph.n_factors < graph.n_factors


def test_tied_factors_share_one_table():
    column = Column.hidden("tag", TAG, 1000)
    graph = unroll(Model([Transitions(column), Bias(column)]), Variables([column]))
    assert graph.n_factors == 999 + 1000
    assert graph.tables.size == 9 + 3


def test_a_user_function_without_data_shares_tables_between_equal_domains():
    tag, bit = Column.hidden("tag", TAG, 4), Column.hidden("bit", BIT, 4)
    variables = Variables([tag, bit])
    template = TupleTemplate(
        "pair", [[0, 4], [1, 5], [4, 5], [6, 7]], lambda a, b: (float(a == b),), ["same"]
    )
    graph = unroll(Model([template], [1.5]), variables)
    assert graph.tables.size == 6 + 4
    world = Assignment.uniform(variables, 3)
    assert graph.score(world.values) == pytest.approx(Model([template], [1.5]).score(world))


def test_a_count_over_too_many_variables_is_refused_with_its_size():
    column = Column.hidden("tag", TAG, 40)
    model = Model([Cardinality(column, "N")])
    with pytest.raises(TreewidthError, match=r"3\*\*40 entries.*Use smaller groups"):
        unroll(model, Variables([column]))


def test_structure_that_depends_on_labels_cannot_be_unrolled():
    variables, model = runs()
    with pytest.raises(InvalidArgumentError, match=r"'runs' .* cannot be unrolled.*Use MCMC"):
        unroll(model, variables)


def test_unrolling_a_large_grid_and_a_long_chain_takes_well_under_a_second():
    side = 200
    number = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1),
            np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1),
        ]
    )
    spin = Column.hidden("spin", BIT, side * side)
    token = Column.hidden("token", Domain("token", range(22)), 100_000)
    model = Model([Transitions(spin, pairs=pairs), Bias(spin), Transitions(token), Bias(token)])
    variables = Variables([spin, token])
    began = time.process_time()
    graph = unroll(model, variables)
    assert time.process_time() - began < 1.0
    assert graph.n_factors == 2 * side * (side - 1) + side * side + 199_999
