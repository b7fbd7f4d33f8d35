"""Plots for a notebook, by matplotlib (the extra ``plots``), on the axes that are given or on new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from factorwise.errors import InvalidArgumentError, MissingExtraError, ShapeError
from factorwise.metrics.calibration import reliability
from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_GRAPH = 200  # variables and factors that can be told apart in a drawing


def plot_convergence(
    values: ArrayLike, *, label: str = "objective", log: bool = False, axes: Axes | None = None
) -> Axes:
    """Draw what was optimised by iteration: the trace of a projection, the history of a fit.

    values : float[iterations] or float[runs, iterations]
    """
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if rows.ndim != 2:
        raise ShapeError(f"values must be one row or one row a run, but their shape is {rows.shape}.")
    drawn = _axes(axes)
    for row in rows:
        drawn.plot(np.arange(len(row)), row)
    drawn.set(xlabel="iteration", ylabel=label, yscale="log" if log else "linear")
    return drawn


def plot_trace(samples: Any, *, axes: Axes | None = None) -> Axes:
    """Draw the scores of all chains by draw: chains that agree wander over the same range."""
    drawn = _axes(axes)
    for number, scores in enumerate(np.atleast_2d(samples.scores)):
        drawn.plot(scores, linewidth=0.8, label=f"chain {number + 1}")
    drawn.set(xlabel="draw", ylabel="score")
    drawn.legend()
    return drawn


def plot_cluster_sizes(labels: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Draw how many clusters there are of each size, both on logarithmic scales.

    labels
        Of each item, its cluster.
    """
    sizes, counts = np.unique(np.unique(np.asarray(labels), return_counts=True)[1], return_counts=True)
    drawn = _axes(axes)
    drawn.scatter(sizes, counts)
    drawn.set(xlabel="items of a cluster", ylabel="clusters", xscale="log", yscale="log")
    return drawn


def plot_reliability(
    probability: ArrayLike, outcome: ArrayLike, *, bins: int = 10, axes: Axes | None = None
) -> Axes:
    """Draw how often what was given a probability came true, beside the diagonal.

    probability, outcome : float[cases], bool[cases]
    bins
        Groups of equal width; the area of a point is the number of its cases.
    """
    mean, share, cases = reliability(probability, outcome, bins=bins)
    drawn = _axes(axes)
    drawn.plot([0, 1], [0, 1], linestyle="--", color="gray")
    drawn.scatter(mean, share, s=20 + 180 * cases / cases.max(initial=1.0))
    drawn.plot(mean, share)
    drawn.set(xlabel="probability", ylabel="share that came true", xlim=(0, 1), ylim=(0, 1))
    return drawn


def plot_learning_curves(
    curves: Mapping[str, Sequence[float]], *, label: str = "score", axes: Axes | None = None
) -> Axes:
    """Draw scores by pass or by size of the training data, a line for each name."""
    drawn = _axes(axes)
    for name, values in curves.items():
        drawn.plot(np.arange(1, len(values) + 1), values, marker="o", label=name)
    drawn.set(xlabel="pass", ylabel=label)
    if len(curves) > 1:
        drawn.legend()
    return drawn


def draw_factor_graph(
    graph: FactorGraph, *, names: Sequence[str] | None = None, axes: Axes | None = None
) -> Axes:
    """Draw a small factor graph: variables as circles, factors as squares.

    names
        Of the variables; their numbers unless given.
    """
    variables, factors = len(graph.cardinality), len(graph.table_start)
    nodes = variables + factors
    if nodes > LARGEST_GRAPH:
        raise InvalidArgumentError(
            f"the graph has {variables} variables and {factors} factors: only up to {LARGEST_GRAPH} of both"
            " can be told apart. Draw a part of it."
        )
    if names is not None and len(names) != variables:
        raise ShapeError(f"{variables} variables need a name each, but {len(names)} were given.")
    owner = np.repeat(np.arange(factors), np.diff(graph.scope_start))
    place = _places(nodes, graph.scope, variables + owner)
    drawn = _axes(axes)
    for variable, factor in zip(graph.scope.tolist(), owner.tolist(), strict=True):
        ends = place[[variable, variables + factor]]
        drawn.plot(ends[:, 0], ends[:, 1], color="gray", linewidth=0.8, zorder=1)
    circles, squares = place[:variables], place[variables:]
    drawn.scatter(circles[:, 0], circles[:, 1], s=350, facecolor="white", edgecolor="black", zorder=2)
    drawn.scatter(squares[:, 0], squares[:, 1], s=40, marker="s", color="black", zorder=2)
    for number, (x, y) in enumerate(circles.tolist()):
        text = str(number) if names is None else names[number]
        drawn.text(x, y, text, ha="center", va="center", zorder=3)
    drawn.set_axis_off()
    drawn.set_aspect("equal")
    return drawn


def _places(nodes: int, one: Any, two: Any) -> Floats:
    """Place nodes so that distances on paper are about those along the edges; parts side by side."""
    edges = coo_array((np.ones(len(one)), (one, two)), shape=(nodes, nodes)).tocsr()
    place, right = np.zeros((nodes, 2)), 0.0
    parts, part = connected_components(edges, directed=False)
    for number in range(parts):
        own = np.flatnonzero(part == number)
        apart = shortest_path(edges[own][:, own], directed=False, unweighted=True)
        inner = np.eye(len(own)) - 1.0 / len(own)
        values, vectors = np.linalg.eigh(-0.5 * inner @ apart**2 @ inner)
        spread = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
        spread = np.pad(spread, ((0, 0), (0, 2 - spread.shape[1])))
        place[own] = spread - spread.min(axis=0) + [right, 0.0]
        right = float(place[own, 0].max()) + 2.0
    return place


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError(
            'plots need matplotlib. Install it with: pip install "factorwise[plots]"'
        ) from error
    return pyplot.subplots(layout="constrained")[1]
