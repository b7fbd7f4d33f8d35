"""What `check_template` says: what was wrong, and what to do about it."""

from itertools import count

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateCheckError, TemplateError
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.model.templates import (
    ClusterSize,
    ClusterTemplate,
    DynamicTemplate,
    PairTemplate,
    TupleTemplate,
    VectorPairTemplate,
)
from factorwise.model.weights import SparseVector
from factorwise.testing import check_template
from factorwise.variables.domain import Domain
from factorwise.variables.fields import Fields
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from factorwise.world.partition import Partition

FIELDS = Fields(x=[3, 1, 4, 1, 5, 9], row=np.arange(12.0).reshape(6, 2))
WORLD = Partition.singletons(6)
BITS = Assignment.initial(Variables([Column.hidden("bit", Domain("bit", ["off", "on"]), 4)]))


class Together(Template):
    """Whether items 0 and 1 are together; ``said`` is what it says of every diff."""

    name, size = "together", 1

    def __init__(self, said=None, constant=0.0):
        self.said = said
        self.score = constant

    def statistics(self, world):
        return SparseVector.from_dense([float(world.labels[0] == world.labels[1])])

    def difference(self, world, diff):
        return self.said

    def constant(self, world):
        return self.score


def one_sided(a, b):
    """Depends on the order of two items that the constructor does not try."""
    return (a.x - b.x if {a.x, b.x} == {4, 5} else 0,)


def counting():
    calls = count()
    return lambda *_: (next(calls),)


FUNCTIONS = {
    "first member": (ClusterTemplate("c", FIELDS, lambda c: (c.x[0],), ["x"]), WORLD),
    "one-sided pair": (PairTemplate("p", FIELDS, one_sided, ["x"]), WORLD),
    "one-sided vector": (
        VectorPairTemplate("v", FIELDS, "row", lambda p, q: p - q if {p, q} == {4.0, 8.0} else 0),
        WORLD,
    ),
    "counts its calls": (ClusterTemplate("c", FIELDS, counting(), ["x"]), WORLD),
    "counts its calls with labels": (TupleTemplate("t", [[0, 1]], counting(), ["x"]), BITS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_remedy_for_a_function_names_what_functions_do_wrong(name):
    template, world = FUNCTIONS[name]
    with pytest.raises(TemplateCheckError, match="brute force finds") as caught:
        check_template(template, world, steps=400)
    message = str(caught.value)
    assert "randomness or on earlier calls" in message
    assert "Its answer must depend only on its arguments" in message
    assert ("in any order of the items" in message) == (world is WORLD)
    assert "difference" not in message


def test_the_remedy_for_a_dynamic_template_is_about_its_keys():
    def touched(values, variable, out):
        out[0] = variable  # and not the variable before it
        return 1

    def both_on(values, key):
        return (values[key[0]] * values[(key[0] + 1) % len(values)],)

    with pytest.raises(TemplateCheckError, match="Fix its touched: it must write the keys of all factors"):
        check_template(DynamicTemplate("d", touched, both_on, ["on"], key_width=1), BITS)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (None, "returned a NoneType as difference: return a SparseVector"),
        (SparseVector.from_dense([1.0, 2.0]), "1 weights, but its difference reached from 0 to 1: give it"),
    ],
    ids=["nothing", "two numbers"],
)
def test_a_difference_that_is_no_vector_of_the_block_is_refused(said, message):
    with pytest.raises(TemplateError, match=message):
        check_template(Together(said), WORLD)


def test_a_constant_that_is_no_number_is_refused():
    with pytest.raises(TemplateError, match="returned None as constant: return a number, -inf to forbid"):
        check_template(Together(SparseVector.empty(), constant=None), WORLD)


def test_a_world_of_more_items_is_refused():
    template = PairTemplate("p", FIELDS, lambda a, b: (a.x == b.x,), ["x"])
    with pytest.raises(ShapeError, match="6 items, but the world has 9: build both from the same records"):
        check_template(template, Partition.singletons(9))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((Model([ClusterSize()]), WORLD), r"a model was given: check each of model\.templates"),
        ((42, WORLD), "42 was given: use PairTemplate"),
        ((ClusterSize(), [0, 0, 1]), "TargetWorld and Joint, but a list was given"),
    ],
    ids=["model", "number", "labels"],
)
def test_what_is_no_template_and_no_world_is_refused(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        check_template(*given)


def test_a_check_that_compared_nothing_says_so():
    never = Together(SparseVector.empty())
    with pytest.raises(TemplateCheckError, match=r"none of 200 random diffs changed .*or more steps"):
        check_template(never, Partition.singletons(500))
    with pytest.raises(TemplateCheckError, match="says 0, brute force finds 1"):
        check_template(never, Partition.singletons(5))


def test_a_bound_that_is_exceeded_is_caught():
    def product(a, b):
        return a.x == b.x, a.x * b.x

    check_template(PairTemplate("p", FIELDS, product, ["same", "product"], bound=[1, 45]), WORLD)
    with pytest.raises(TemplateCheckError, match=r"product of a pair is 45, but its bound is 44\. Raise"):
        check_template(PairTemplate("p", FIELDS, product, ["same", "product"], bound=[1, 44]), WORLD)


def test_two_weights_of_one_name_are_caught():
    template = PairTemplate("p", FIELDS, lambda a, b: (a.x == b.x, 1), ["same", "same"])
    with pytest.raises(TemplateCheckError, match=r"2 weights .* called 'p: same'.* its own name"):
        check_template(template, WORLD)
