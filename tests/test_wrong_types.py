"""Constructors whose arrays compiled code indexes, called with values of wrong types: an error of ours."""

import random
import warnings

import numpy as np

from factorwise.errors import FactorwiseError
from factorwise.learning.updates import Arow, ConfidenceWeighted, PassiveAggressive, Unit
from factorwise.model.grounding import FactorGraph
from factorwise.variables.sparse_rows import SparseRows
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition
from factorwise.world.shards import Shards

CALLS = 2_000
WRONG = (
    None, "", "x", b"x", object(), float("nan"), float("inf"), -1, 2**70, 1j, [None], ["a"], [[1], [1, 2]],
    {}, {"a": 1}, {1, 2}, lambda: None, np.zeros((2, 2)), np.array(["a"]), np.array([None]),
    np.zeros(3, complex), np.array([np.nan, 1.0]), np.array([-1, 5]), np.array(2.5), int, np.float64, "0",
    [2**40], [-(2**70)], [0.5],
)  # fmt: skip
#: Calls that work, from which wrong ones are made by changing one or two arguments.
RIGHT = {
    "FactorGraph": (FactorGraph, ([2, 2], [0, 2], [0, 1], [0], [0.0] * 4)),
    "SparseRows": (SparseRows, ([0, 1], [0], [1.0], 2)),
    "LinkGraph": (LinkGraph, ([0], [1], [0, 1, 2], [1, 0], [0, 0])),
    "LinkGraph.from_pairs": (LinkGraph.from_pairs, (2, [0], [1])),
    "Partition.from_labels": (Partition.from_labels, ([0, 0, 1],)),
    "Shards": (Shards, ([0, 0, 1],)),
    "Unit": (lambda *given: Unit(rate=given[0], decay=given[1]), (1.0, 0.5)),
    "PassiveAggressive": (lambda *given: PassiveAggressive(cap=given[0], margin=given[1]), (1.0, 0.5)),
    "ConfidenceWeighted": (
        lambda *given: ConfidenceWeighted(confidence=given[0], floor=given[1]),
        (0.9, 0.5),
    ),
    "Arow": (lambda *given: Arow(regularization=given[0], variance=given[1]), (1.0, 0.5)),
}


def test_values_of_wrong_types_are_refused_with_an_error_of_ours():
    rng, outcomes = random.Random(0), {"refused": 0, "taken": 0}
    warnings.simplefilter("ignore")
    for number in range(CALLS):
        name = sorted(RIGHT)[number % len(RIGHT)]
        function, right = RIGHT[name]
        arguments = list(right)
        for place in rng.sample(range(len(arguments)), min(len(arguments), rng.choice((1, 1, 2)))):
            arguments[place] = rng.choice(WRONG)
        try:
            function(*arguments)
            outcomes["taken"] += 1
        except FactorwiseError:
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{name}{tuple(arguments)} raised {error!r}") from error
    assert outcomes["taken"] < CALLS // 5  # any texts are labels of shards, any number above zero is a rate
    for function, right in RIGHT.values():
        function(*right)
