"""Constructors whose arrays compiled code indexes, called with values of wrong types: an error of ours each."""

import random
import warnings

import numpy as np

from factorwise.errors import FactorwiseError
from factorwise.model.grounding import FactorGraph
from factorwise.variables.sparse_rows import SparseRows
from factorwise.world.links import LinkGraph

CALLS = 2_000
WRONG = (
    None, "", "x", b"x", object(), float("nan"), float("inf"), -1, 2**70, 1j, [None], ["a"], [[1], [1, 2]],
    {}, {"a": 1}, {1, 2}, lambda: None, np.zeros((2, 2)), np.array(["a"]), np.array([None]), np.zeros(3, complex),
    np.array([np.nan, 1.0]), np.array([-1, 5]), np.array(2.5), int, np.float64, "0", [2**40], [-(2**70)], [0.5],
)  # fmt: skip
#: Calls that work, from which wrong ones are made by changing one or two arguments.
RIGHT = {
    "FactorGraph": (FactorGraph, ([2, 2], [0, 2], [0, 1], [0], [0.0] * 4)),
    "SparseRows": (SparseRows, ([0, 1], [0], [1.0], 2)),
    "LinkGraph": (LinkGraph, ([0], [1], [0, 1, 2], [1, 0], [0, 0])),
    "LinkGraph.from_pairs": (LinkGraph.from_pairs, (2, [0], [1])),
}


def test_values_of_wrong_types_are_refused_with_an_error_of_ours():
    rng, outcomes = random.Random(0), {"refused": 0, "taken": 0}
    warnings.simplefilter("ignore")
    for number in range(CALLS):
        name = sorted(RIGHT)[number % len(RIGHT)]
        function, right = RIGHT[name]
        arguments = list(right)
        for place in rng.sample(range(len(arguments)), rng.choice((1, 1, 2))):
            arguments[place] = rng.choice(WRONG)
        try:
            function(*arguments)
            outcomes["taken"] += 1
        except FactorwiseError as error:
            assert str(error).strip()
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{name}{tuple(arguments)} raised {error!r}") from error
    assert outcomes["taken"] < CALLS // 20  # None for the values of sparse rows is right
    for function, right in RIGHT.values():
        function(*right)
