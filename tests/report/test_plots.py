"""Plots: what they draw, read back from the axes."""

import warnings
from itertools import combinations
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.model.grounding import FactorGraph
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize
from factorwise.report import plots
from factorwise.world.partition import Partition

mpl.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    mpl.pyplot.close("all")


def ticks(axis):
    axis.figure.canvas.draw()
    return [text.get_text() for text in axis.get_ticklabels(which="both") if text.get_text()]


def test_every_run_of_a_convergence_is_a_line():
    axes = plots.plot_convergence([[3.0, 2.0, 1.0], [4.0, 2.0, 1.5]], log=True)
    assert [line.get_ydata().tolist() for line in axes.get_lines()] == [[3, 2, 1], [4, 2, 1.5]]
    assert axes.get_yscale() == "log"
    with pytest.raises(ShapeError):
        plots.plot_convergence(np.zeros((2, 2, 2)))
    with pytest.raises(InvalidArgumentError, match="give a trace or a history"):
        plots.plot_convergence(Partition.singletons(3))


def test_iterations_draws_and_passes_are_counted_from_one_in_whole_numbers():
    for axes in (
        plots.plot_convergence([3.0, 2.0, 1.0]),
        plots.plot_trace(SimpleNamespace(scores=[[3.0, 2.0, 1.0]])),
        plots.plot_learning_curves({"train": [0.5, 0.6, 0.7]}),
    ):
        assert axes.get_lines()[0].get_xdata().tolist() == [1, 2, 3]
        assert all(text.isdigit() for text in ticks(axes.xaxis))


def test_a_single_iteration_can_be_seen():
    assert plots.plot_convergence([3.0]).get_lines()[0].get_marker() == "o"


def test_figures_may_be_laid_out_again_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.plot_convergence([3.0, 2.0]).figure.tight_layout()


def test_a_trace_has_a_line_for_each_chain():
    axes = plots.plot_trace(SimpleNamespace(scores=np.array([[1.0, 2.0], [0.0, 1.0]])))
    assert len(axes.get_lines()) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["chain 1", "chain 2"]
    with pytest.raises(
        InvalidArgumentError, match=r"a list was given: plot plain numbers.* plot_convergence"
    ):
        plots.plot_trace([1, 2])


def test_cluster_sizes_are_counted():
    axes = plots.plot_cluster_sizes([0, 0, 1, 2, 2, 3])
    assert axes.collections[0].get_offsets().tolist() == [[1, 2], [2, 2]]
    with pytest.raises(ShapeError, match=r"a Partition of shape \(\) was given: give the labels of a world"):
        plots.plot_cluster_sizes(Partition.singletons(3))


@pytest.mark.parametrize(
    ("sizes", "shown"),
    [
        ([1, 2, 3, 4], ["1", "2", "3", "4"]),
        ([1, 3, 40], ["1", "2", "5", "10", "20"]),
        ([1, 2000], ["1", "1,000"]),
    ],
)
def test_sizes_are_written_as_plain_numbers(sizes, shown):
    axes = plots.plot_cluster_sizes(np.repeat(np.arange(len(sizes)), sizes))
    assert set(shown) <= set(ticks(axes.xaxis))
    assert all(text.replace(",", "").isdigit() for text in ticks(axes.xaxis) + ticks(axes.yaxis))


def test_reliability_is_the_share_that_came_true():
    axes = plots.plot_reliability([0.1, 0.1, 0.9, 0.9, 1.0], [0, 1, 1, 1, 1], bins=2)
    np.testing.assert_allclose(axes.collections[0].get_offsets(), [[0.1, 0.5], [2.8 / 3, 1.0]])
    with pytest.raises(InvalidArgumentError, match="between 0 and 1"):
        plots.plot_reliability([1.5], [1])
    with pytest.raises(ShapeError):
        plots.plot_reliability([0.5], [1, 0])


def test_points_of_a_reliability_show_how_many_cases_they_stand_for():
    probability, outcome = [0.05] * 1000 + [0.45] * 500 + [0.95], [0] * 1500 + [1]
    axes = plots.plot_reliability(probability, outcome)
    most, half, one = axes.collections[0].get_sizes()
    assert most == pytest.approx(2 * half)
    assert one >= 10
    assert [text.get_text() for text in axes.texts] == ["1,000", "500", "1"]


def test_learning_curves_have_a_legend_if_there_are_several():
    axes = plots.plot_learning_curves({"train": [0.5, 0.9], "held out": [0.4, 0.6]})
    assert len(axes.get_lines()) == 2
    assert axes.get_legend() is not None
    assert plots.plot_learning_curves({"train": [0.5]}).get_legend() is None
    with pytest.raises(InvalidArgumentError, match=r"a list was given: give {name: scores, \.\.\.}"):
        plots.plot_learning_curves([0.5, 0.9])


def test_a_factor_graph_is_drawn_with_all_its_edges():
    table = np.zeros((2, 2))
    graph = FactorGraph.build([2, 2, 2, 2], [((0, 1), table), ((1, 2), table), ((3,), np.zeros(2))])
    axes = plots.draw_factor_graph(graph, names=["a", "b", "c", "long name"])
    assert len(axes.get_lines()) == 5
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c", "long name", "f0", "f1", "f2"]
    ends = [np.column_stack(line.get_data()) for line in axes.get_lines()]
    lengths = [float(np.hypot(*np.diff(end, axis=0)[0])) for end in ends]
    assert lengths == pytest.approx([1.0] * 5, abs=0.01)  # a path
    with pytest.raises(ShapeError, match="4 variables need a name each, but 1 were given"):
        plots.draw_factor_graph(graph, names=["a"])
    with pytest.raises(ShapeError, match="3 factors need a name each, but 1 were given"):
        plots.draw_factor_graph(graph, factor_names=["a"])
    with pytest.raises(InvalidArgumentError, match=r"a Model was given: make one .* factorwise\.unroll"):
        plots.draw_factor_graph(Model([ClusterSize()]))


def test_names_in_a_drawing_cover_edges_and_not_each_other():
    scopes = [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 0),
        (1,),
        (0, 2, 4),
    ]  # 0 and 2 have the same distances to all others
    graph = FactorGraph.build([2] * 5, [(scope, np.zeros((2,) * len(scope))) for scope in scopes])
    axes = plots.draw_factor_graph(graph, names=["rain", "sprinkler", "wet grass", "slippery", "b"])
    axes.figure.canvas.draw()
    boxes = [text.get_bbox_patch().get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert min(text.get_zorder() for text in axes.texts) > max(line.get_zorder() for line in axes.get_lines())
    inside = axes.figure.bbox
    assert all(inside.contains(*corner) for box in boxes for corner in (box.min, box.max))


def test_a_new_figure_has_room_for_a_long_chain():
    chain = FactorGraph.build([2] * 12, [((v, v + 1), np.zeros((2, 2))) for v in range(11)])
    assert plots.draw_factor_graph(chain).figure.get_figwidth() > 10


def test_a_graph_that_is_too_large_is_refused():
    with pytest.raises(InvalidArgumentError, match="distinguished"):
        plots.draw_factor_graph(FactorGraph.build([2] * 300, []))
