import pytest

from factorwise.errors import InvalidArgumentError, TemplateError
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.model.templates import ClusterSize
from factorwise.model.weights import SparseVector
from factorwise.world.diff import Transfer
from factorwise.world.partition import Partition


class Straying(Template):
    name, size = "straying", 1

    def __init__(self, answer):
        self.answer = answer

    def statistics(self, world):
        return self.answer


def test_statistics_outside_a_templates_block_are_refused():
    model = Model([Straying(SparseVector.of([0, 1], [1.0, 2.0])), ClusterSize()])
    with pytest.raises(
        TemplateError, match=r"'straying' has 1 weights, but its statistics reached from 0 to 1.*size"
    ):
        model.score(Partition.singletons(3))


def test_statistics_that_are_no_sparse_vector_are_refused():
    with pytest.raises(TemplateError, match="returned a list as statistics: return a SparseVector"):
        Model([Straying([1.0])]).score(Partition.singletons(3))


@pytest.mark.parametrize("given", [[], ClusterSize(), [len]], ids=["none", "not a list", "a function"])
def test_a_model_is_made_of_templates(given):
    with pytest.raises(InvalidArgumentError, match="template"):
        Model(given)


def test_a_gain_is_the_difference_of_two_scores():
    model = Model([ClusterSize()], {"cluster size": [0.7, -0.3]})
    world, diff = Partition.from_labels([0, 0, 1, 2]), Transfer([0], 0, 1)
    assert model.gain(world, diff) == pytest.approx(model.score(world.after(diff)) - model.score(world))


def test_a_model_shows_the_range_of_the_weights_of_each_template():
    model = Model([ClusterSize("a"), ClusterSize("b")], {"a": [0.25, -1.5], "b": [2.0, 3.5]})
    view = model._repr_html_()
    assert "<td>-1.5</td><td>0.25</td>" in view
    assert "<td>2</td><td>3.5</td>" in view
