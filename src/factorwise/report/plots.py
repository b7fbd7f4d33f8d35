"""Plots for notebooks with matplotlib (the extra ``plots``), on given axes or on new ones."""

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
    from matplotlib.axis import Axis

LARGEST_GRAPH = 200  # variables and factors that can be distinguished in a drawing
_AREA_OF_MOST, _AREA_OF_LEAST = 300.0, 12.0  # of points, in square points; the smallest is still visible
_LOW = 0.1  # shares below which points are close to the axis
_INCHES = 0.6  # between a variable and its factor
_SMALLEST, _LARGEST = (6.4, 4.8), (12.0, 9.0)  # figures of graphs, in inches
_ROUNDS = 300  # of moving nodes


def plot_convergence(
    values: ArrayLike, *, label: str = "objective", log: bool = False, axes: Axes | None = None
) -> Axes:
    """Plot an optimised value by iteration: the trace of a projection, the history of a fit.

    values : float[iterations] or float[runs, iterations]
    """
    try:
        rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"values must be numbers, but a {type(values).__name__} was given that cannot be converted:"
            " give a trace or a history."
        ) from error
    if rows.ndim != 2:
        raise ShapeError(f"values must be one row or one row per run, but their shape is {rows.shape}.")
    drawn = _axes(axes)
    for row in rows:
        drawn.plot(np.arange(1, len(row) + 1), row, marker="o" if len(row) == 1 else None)
    drawn.set(xlabel="iteration", ylabel=label, yscale="log" if log else "linear")
    _count_on(drawn.xaxis)
    return drawn


def plot_trace(samples: Any, *, axes: Axes | None = None) -> Axes:
    """Plot the scores of all chains by draw: chains that agree cover the same range."""
    if not hasattr(samples, "scores"):
        raise InvalidArgumentError(
            f"plot_trace needs the result of factorwise.sample, but a {type(samples).__name__} was"
            " given: plot plain numbers, such as the trace of an annealing, with plot_convergence."
        )
    drawn = _axes(axes)
    for number, scores in enumerate(np.atleast_2d(samples.scores)):
        drawn.plot(np.arange(1, len(scores) + 1), scores, linewidth=0.8, label=f"chain {number + 1}")
    drawn.set(xlabel="draw", ylabel="score")
    drawn.legend()
    _count_on(drawn.xaxis)
    return drawn


def plot_cluster_sizes(labels: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Plot the number of clusters of each size, both on logarithmic scales.

    labels
        The cluster of each item.
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ShapeError(
            f"labels must be one for each item, but a {type(labels).__name__} of shape {array.shape}"
            " was given: give the labels of a world."
        )
    sizes, counts = np.unique(np.unique(array, return_counts=True)[1], return_counts=True)
    drawn = _axes(axes)
    drawn.scatter(sizes, counts)
    drawn.set(xlabel="items of a cluster", ylabel="clusters", xscale="log", yscale="log")
    _count_by_ratio_on(drawn.xaxis, sizes.max(initial=1))
    _count_by_ratio_on(drawn.yaxis, counts.max(initial=1))
    return drawn


def plot_reliability(
    probability: ArrayLike, outcome: ArrayLike, *, bins: int = 10, axes: Axes | None = None
) -> Axes:
    """Plot how often cases with a given probability came true, with the diagonal for comparison.

    probability, outcome : float[cases], bool[cases]
    bins
        Groups of equal width; the area of a point shows the number of its cases, which is printed beside it.
    """
    mean, share, cases = reliability(probability, outcome, bins=bins)
    drawn = _axes(axes)
    drawn.plot([0, 1], [0, 1], linestyle="--", color="gray")
    area = np.maximum(_AREA_OF_MOST * cases / cases.max(initial=1.0), _AREA_OF_LEAST)
    (line,) = drawn.plot(mean, share, linewidth=0.8)
    drawn.scatter(mean, share, s=area, color=line.get_color(), clip_on=False, zorder=3)
    for x, y, count, size in zip(mean, share, cases, area, strict=True):
        radius = float(np.sqrt(size / np.pi))
        right_below = ((0.7 * radius, -0.7 * radius), "left", "top")  # away from the diagonal
        above = ((0.0, radius + 1.0), "center", "bottom")  # not over the axis
        offset, ha, va = above if y < _LOW else right_below
        text, units = f"{count:,.0f}", "offset points"
        drawn.annotate(text, (x, y), offset, textcoords=units, ha=ha, va=va, fontsize="small")
    drawn.set(xlabel="probability", ylabel="share that came true", xlim=(0, 1), ylim=(0, 1))
    return drawn


def plot_learning_curves(
    curves: Mapping[str, Sequence[float]], *, label: str = "score", axes: Axes | None = None
) -> Axes:
    """Plot scores by pass or by size of the training data, a line for each name."""
    if not isinstance(curves, Mapping):
        raise InvalidArgumentError(
            f"curves must have names, but a {type(curves).__name__} was given: give {{name: scores, ...}}."
        )
    drawn = _axes(axes)
    for name, values in curves.items():
        drawn.plot(np.arange(1, len(values) + 1), values, marker="o", label=name)
    drawn.set(xlabel="pass", ylabel=label)
    _count_on(drawn.xaxis)
    if len(curves) > 1:
        drawn.legend()
    return drawn


def draw_factor_graph(
    graph: FactorGraph,
    *,
    names: Sequence[str] | None = None,
    factor_names: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw a small factor graph: variables round, factors square.

    names, factor_names
        Names of the variables and of the factors; by default their numbers, those of factors after an f.
    """
    if not isinstance(graph, FactorGraph):
        raise InvalidArgumentError(
            f"draw_factor_graph needs a FactorGraph, but a {type(graph).__name__} was given: make one"
            " of a model over assignments with factorwise.unroll(model, variables)."
        )
    variables, factors = graph.n_variables, graph.n_factors
    if variables + factors > LARGEST_GRAPH:
        raise InvalidArgumentError(
            f"the graph has {variables} variables and {factors} factors, but only {LARGEST_GRAPH} can"
            " be distinguished. Draw a part of it."
        )
    rounds = _names("variables", variables, "", names)
    squares = _names("factors", factors, "f", factor_names)
    owner = np.repeat(np.arange(factors), np.diff(graph.scope_start))
    positions = _places(variables + factors, graph.scope, variables + owner)
    drawn = _axes(axes, positions)
    for variable, factor in zip(graph.scope.tolist(), owner.tolist(), strict=True):
        ends = positions[[variable, variables + factor]]
        drawn.plot(ends[:, 0], ends[:, 1], color="gray", linewidth=0.8, zorder=1)
    styles = [{"boxstyle": "circle" if len(name) < 4 else "ellipse", "fc": "white"} for name in rounds]
    styles += [{"boxstyle": "square", "fc": "lightgray"}] * factors
    for (x, y), name, style in zip(positions.tolist(), rounds + squares, styles, strict=True):
        drawn.text(x, y, name, ha="center", va="center", zorder=2, fontsize="small", bbox=style)
    drawn.update_datalim(positions)
    drawn.autoscale_view()
    drawn.set_axis_off()
    drawn.set_aspect("equal")
    return drawn


def _names(kind: str, count: int, prefix: str, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [f"{prefix}{number}" for number in range(count)]
    if len(names) != count:
        raise ShapeError(f"{count} {kind} need a name each, but {len(names)} were given.")
    return list(names)


def _places(nodes: int, first: Any, two: Any) -> Floats:
    """Position nodes so that distances in the plot approximate those along the edges.

    Parts are side by side.
    """
    edges = coo_array((np.ones(len(first)), (first, two)), shape=(nodes, nodes)).tocsr()
    positions, right = np.zeros((nodes, 2)), 0.0
    parts, part = connected_components(edges, directed=False)
    for number in range(parts):
        own = np.flatnonzero(part == number)
        apart = shortest_path(edges[own][:, own], directed=False, unweighted=True)
        spread = _spread(apart)
        positions[own] = spread - spread.min(axis=0) + [right, 0.0]
        right = float(positions[own, 0].max()) + 2.0
    return positions


def _spread(apart: Floats) -> Floats:
    """Return positions whose distances are about ``apart``, near ones above all.

    The initial positions are those of classical scaling, slightly perturbed, because it puts nodes with the
    same distances to all others on the same position. Then every round moves all nodes to the minimum of the
    squared relative errors of distances, seen from the previous positions (stress majorization).
    """
    count = len(apart)
    inner = np.eye(count) - 1.0 / count
    values, vectors = np.linalg.eigh(-0.5 * inner @ apart**2 @ inner)
    positions = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    positions = np.pad(positions, ((0, 0), (0, 2 - positions.shape[1])))
    positions += 0.1 * np.random.default_rng(0).standard_normal(positions.shape)
    pull = 1.0 / np.maximum(apart, 1.0) ** 2 * (1.0 - np.eye(count))
    balance = np.linalg.pinv(np.diag(pull.sum(axis=1)) - pull)
    for _ in range(_ROUNDS):
        distance = np.linalg.norm(positions[:, None] - positions, axis=2)
        ratio = pull * apart / np.maximum(distance, 1e-9)
        positions = balance @ (np.diag(ratio.sum(axis=1)) - ratio) @ positions
    return np.asarray(positions)


def _axes(axes: Axes | None, positions: Floats | None = None) -> Axes:
    """Return ``axes``, or those of a new figure that is large enough for the nodes."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError(
            'plots need matplotlib. Install it with: pip install "factorwise[plots]"'
        ) from error
    size = (
        None if positions is None else np.clip(_INCHES * np.ptp(positions, axis=0) + 1.0, _SMALLEST, _LARGEST)
    )
    return pyplot.subplots(layout="tight", figsize=size)[1]


def _count_on(axis: Axis) -> None:
    """Show whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def _count_by_ratio_on(axis: Axis, largest: float) -> None:
    """Show whole numbers on a logarithmic scale, as many as fit."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    steps = (1, 2, 3, 4, 5, 7) if largest <= 10 else (1, 2, 5) if largest <= 100 else (1,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    axis.set_minor_formatter(NullFormatter())
