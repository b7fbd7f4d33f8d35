"""Plots: what they draw, read back from the axes."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.model.grounding import FactorGraph
from factorwise.report import plots

mpl.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    mpl.pyplot.close("all")


def test_every_run_of_a_convergence_is_a_line():
    axes = plots.plot_convergence([[3.0, 2.0, 1.0], [4.0, 2.0, 1.5]], log=True)
    assert [line.get_ydata().tolist() for line in axes.get_lines()] == [[3, 2, 1], [4, 2, 1.5]]
    assert axes.get_yscale() == "log"
    with pytest.raises(ShapeError):
        plots.plot_convergence(np.zeros((2, 2, 2)))


def test_a_trace_has_a_line_for_each_chain():
    axes = plots.plot_trace(SimpleNamespace(scores=np.array([[1.0, 2.0], [0.0, 1.0]])))
    assert len(axes.get_lines()) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["chain 1", "chain 2"]


def test_cluster_sizes_are_counted():
    axes = plots.plot_cluster_sizes([0, 0, 1, 2, 2, 3])
    assert axes.collections[0].get_offsets().tolist() == [[1, 2], [2, 2]]


def test_reliability_is_the_share_that_came_true():
    axes = plots.plot_reliability([0.1, 0.1, 0.9, 0.9, 1.0], [0, 1, 1, 1, 1], bins=2)
    np.testing.assert_allclose(axes.collections[0].get_offsets(), [[0.1, 0.5], [2.8 / 3, 1.0]])
    with pytest.raises(InvalidArgumentError, match="between 0 and 1"):
        plots.plot_reliability([1.5], [1])
    with pytest.raises(ShapeError):
        plots.plot_reliability([0.5], [1, 0])


def test_learning_curves_have_a_legend_if_there_are_several():
    axes = plots.plot_learning_curves({"train": [0.5, 0.9], "held out": [0.4, 0.6]})
    assert len(axes.get_lines()) == 2
    assert axes.get_legend() is not None
    assert plots.plot_learning_curves({"train": [0.5]}).get_legend() is None


def test_a_factor_graph_is_drawn_with_all_its_edges():
    table = np.zeros((2, 2))
    graph = FactorGraph.build([2, 2, 2, 2], [((0, 1), table), ((1, 2), table), ((3,), np.zeros(2))])
    axes = plots.draw_factor_graph(graph, names=["a", "b", "c", "d"])
    assert len(axes.get_lines()) == 5
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c", "d"]
    circles, squares = (part.get_offsets() for part in axes.collections)
    assert len(circles) == 4
    assert len(squares) == 3
    ends = [np.column_stack(line.get_data()) for line in axes.get_lines()]
    assert [float(np.hypot(*np.diff(end, axis=0)[0])) for end in ends] == pytest.approx([1.0] * 5)  # a path
    with pytest.raises(ShapeError, match="need a name each"):
        plots.draw_factor_graph(graph, names=["a"])


def test_a_graph_that_is_too_large_is_refused():
    with pytest.raises(InvalidArgumentError, match="told apart"):
        plots.draw_factor_graph(FactorGraph.build([2] * 300, []))
