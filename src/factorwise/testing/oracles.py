"""Checks that any marginal oracle and any MAP oracle must pass, on deliberately awkward graphs.

>>> from factorwise.inference.exact.enumeration import Enumeration
>>> for check in marginal_oracle_checks(Enumeration(), awkward_graphs()):
...     check()

Every check is a `functools.partial` that raises ``AssertionError``; `check_name` names it for a test report.
Give an oracle that is exact only on some graphs just those: ``{name: graph for name, graph in
awkward_graphs().items() if is_acyclic(graph)}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ImpossibleError
from factorwise.inference.base import Best, MapOracle, MarginalOracle, Marginals
from factorwise.inference.exact.enumeration import Enumeration
from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats

FORBIDDEN = -np.inf
_SEED = 20


def awkward_graphs() -> dict[str, FactorGraph]:
    """Return small possible graphs, each with one property that breaks careless inference."""
    draw = np.random.default_rng(_SEED).normal
    graphs: dict[str, FactorGraph] = {}

    def add(name: str, cardinality: list[int], scopes: list[tuple[int, ...]], scale: float = 1.0) -> None:
        sizes = np.array(cardinality)
        tables = [draw(scale=scale, size=tuple(sizes[list(scope)])) for scope in scopes]
        graphs[name] = FactorGraph.build(sizes, zip(scopes, tables, strict=True))

    add("single variable", [3], [(0,)])
    add("single variable without factors", [3], [])
    add("no factors", [2, 3], [])
    add("tree", [2, 3, 2, 4, 2], [(0,), (1, 0), (1, 2), (3,), (3, 1), (2, 4)])
    add("star", [3, 2, 2, 3, 2], [(0, leaf) for leaf in range(1, 5)])
    add("chain", [3, 3, 3, 3], [(v,) for v in range(4)] + [(v, v + 1) for v in range(3)])
    add("chain in another numbering", [2, 3, 2, 4], [(2, 0), (0, 3), (1, 3), (3,)])
    add("forest", [2, 2, 3, 2, 2], [(0, 1), (2, 3), (4,)])
    add("loop", [2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0)])
    add("grid", [2] * 9, [(v,) for v in range(9)] + grid_edges(3, 3))
    add("clique", [2, 3, 2, 3], list(combinations(range(4), 2)))
    add("duplicate factors", [2, 3, 2], [(0, 1), (0, 1), (1, 2), (1,), (1,)])
    add("duplicate factors in the other order", [2, 3, 2], [(0, 1), (1, 0), (1, 2), (2, 1)])
    add("unused variable", [2, 3, 2], [(0, 2)])
    add("domains of size one", [1, 2, 1, 3], [(0, 1), (1, 2), (2, 3), (0,)])
    add("only domains of size one", [1, 1], [(0, 1), (1,)])
    add("three variables in a factor", [2, 3, 2, 2], [(0, 2, 1), (1, 3), (2,)])
    add("four variables in a factor", [2, 2, 3, 2, 2], [(3, 0, 2, 1), (4, 1)])
    add("pair inside a larger factor", [2, 3, 2], [(0, 1, 2), (2, 0), (1,)])
    add("overlapping large factors", [2, 2, 2, 2], [(0, 1, 2), (1, 2, 3)])
    add("constant factor", [2, 2], [(), (0, 1)])
    add("only a constant factor", [2], [()])
    add("large scores in a chain", [3, 3, 3], [(0,), (0, 1), (1, 2), (2,)], 800.0)
    add("large scores in a tree", [2, 3, 2, 2], [(0, 1), (0, 2), (0, 3), (3,)], 800.0)
    add("large scores in a loop", [2, 2, 2], [(0, 1), (1, 2), (2, 0)], 800.0)
    graphs["shared tables"] = _shared_tables(draw(size=(2, 2)))
    graphs["cancelling large scores"] = _cancelling_scores()
    graphs["all scores equal"] = FactorGraph.build([2, 2, 2], [((0, 1), np.zeros((2, 2)))])
    graphs |= _hard_graphs()
    return graphs


def impossible_graphs() -> dict[str, FactorGraph]:
    """Return graphs in which every setting has probability zero, although no single table shows it.

    The exception is the first, whose one table forbids everything.
    """
    same = np.where(np.eye(2) > 0, 0.0, FORBIDDEN)
    reversed_scope = same[::-1]
    return {
        "forbidden variable": FactorGraph.build(
            [2, 2], [((0,), [FORBIDDEN] * 2), ((0, 1), np.zeros((2, 2)))]
        ),
        "contradiction in a chain": FactorGraph.build(
            [2, 2, 2],
            [((0,), [0.0, FORBIDDEN]), ((0, 1), same), ((1, 2), same), ((2,), [FORBIDDEN, 0.0])],
        ),
        "contradiction in a loop": FactorGraph.build(
            [2, 2, 2], [((0, 1), same), ((1, 2), same), ((2, 0), reversed_scope)]
        ),
        "forbidding constant": FactorGraph.build([2], [((), FORBIDDEN), ((0,), [0.0, 1.0])]),
    }


def grid_edges(rows: int, columns: int) -> list[tuple[int, ...]]:
    """Return the neighbouring pairs of a grid numbered row by row."""
    across = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    down = [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
    return [*across, *down]


def is_acyclic(graph: FactorGraph) -> bool:
    """Whether variables and factors, connected if a factor names a variable, form a forest.

    Two factors over the same pair of variables already close a loop.
    """
    leader = list(range(graph.n_variables + graph.n_factors))

    def find(member: int) -> int:
        while leader[member] != member:
            member = leader[member]
        return member

    for factor in range(graph.n_factors):
        for variable in graph.scope_of(factor):
            ends = find(graph.n_variables + factor), find(variable)
            if ends[0] == ends[1]:
                return False
            leader[ends[0]] = ends[1]
    return True


def marginal_oracle_checks(
    oracle: MarginalOracle, graphs: Mapping[str, FactorGraph], *, tolerance: float = 1e-8
) -> Iterator[partial[None]]:
    """Yield the checks that an oracle exact on all of ``graphs`` must pass.

    tolerance
        Largest error of a probability; for log Z and the entropy, relative to the size of the scores.
    """
    for name, graph in graphs.items():
        yield partial(_marginals_have_the_shapes_of_the_graph, oracle, graph, name=name)
        yield partial(_node_marginals_equal_enumeration, oracle, graph, tolerance, name=name)
        yield partial(_factor_marginals_equal_enumeration, oracle, graph, tolerance, name=name)
        yield partial(_log_partition_equals_enumeration, oracle, graph, tolerance, name=name)
        yield partial(_entropy_equals_enumeration, oracle, graph, tolerance, name=name)
        yield partial(_marginals_leave_the_graph_alone, oracle, graph, name=name)
        yield partial(_marginals_are_the_same_twice, oracle, graph, name=name)


def map_oracle_checks(
    oracle: MapOracle, graphs: Mapping[str, FactorGraph], *, tolerance: float = 1e-8
) -> Iterator[partial[None]]:
    """Yield the checks that a MAP oracle exact on all of ``graphs`` must pass."""
    for name, graph in graphs.items():
        yield partial(_best_is_a_setting_of_the_graph, oracle, graph, name=name)
        yield partial(_best_score_is_the_score_of_its_values, oracle, graph, name=name)
        yield partial(_best_score_equals_enumeration, oracle, graph, tolerance, name=name)
        yield partial(_best_leaves_the_graph_alone, oracle, graph, name=name)
        yield partial(_best_is_the_same_twice, oracle, graph, name=name)


def impossible_checks(
    ask: Callable[[FactorGraph], object], graphs: Mapping[str, FactorGraph]
) -> Iterator[partial[None]]:
    """Yield the checks that ``ask`` refuses graphs without a possible setting.

    ask
        A method, for example ``oracle.marginals``.
    """
    for name, graph in graphs.items():
        yield partial(_the_impossible_is_refused, ask, graph, name=name)


def check_name(check: partial[None]) -> str:
    """Return the name of a check and of its graph."""
    return f"{check.func.__name__.strip('_')}: {check.keywords['name']}"


def _shared_tables(table: NDArray[np.float64]) -> FactorGraph:
    """Three tied factors around a loop: one table in storage."""
    return FactorGraph(
        np.array([2, 2, 2], dtype=np.int64),
        np.array([0, 2, 4, 6], dtype=np.int64),
        np.array([0, 1, 1, 2, 2, 0], dtype=np.int64),
        np.zeros(3, dtype=np.int64),
        np.asarray(table, dtype=np.float64).ravel(),
    )


def _cancelling_scores() -> FactorGraph:
    """Return a chain whose factors favor labels by 1800 nats but cancel, so that every setting is likely."""
    lean = np.array([900.0, -900.0])
    first = np.array([[0.1, -0.4], [0.7, 0.2]]) - lean[:, None] + lean
    second = np.array([[-0.3, 0.5], [0.0, 0.9]]) - lean[:, None]
    return FactorGraph.build([2, 2, 2], [((0,), lean), ((0, 1), first), ((1, 2), second)])


def _hard_graphs() -> dict[str, FactorGraph]:
    unlike = np.where(np.eye(3) > 0, FORBIDDEN, 0.3 * np.arange(9.0).reshape(3, 3))
    same = np.where(np.eye(3) > 0, np.arange(3.0), FORBIDDEN)
    rise = np.where(np.tri(3, dtype=bool), FORBIDDEN, 0.0)
    lean = [0.2, FORBIDDEN, -0.7]
    return {
        "hard zeros in a chain": FactorGraph.build(
            [3] * 4, [((0, 1), unlike), ((1, 2), same), ((3, 2), unlike), ((0,), lean)]
        ),
        "hard zeros leave one setting": FactorGraph.build([3] * 3, [((0, 1), rise), ((1, 2), rise)]),
        "hard zeros in a tree": FactorGraph.build(
            [3] * 5, [((0, leaf), unlike) for leaf in (1, 2, 3)] + [((4, 3), same), ((4,), lean)]
        ),
        "hard zeros in a loop": FactorGraph.build(
            [3] * 3, [((v, w), unlike) for v, w in (*pairwise(range(3)), (2, 0))]
        ),
    }


def _marginals_have_the_shapes_of_the_graph(oracle: MarginalOracle, graph: FactorGraph, *, name: str) -> None:
    marginals = oracle.marginals(graph)
    assert [len(p) for p in marginals.node] == graph.cardinality.tolist(), f"node marginals of {name!r}"
    shapes = [table.shape for _, table in graph.factors()]
    assert [np.shape(p) for p in marginals.factor] == shapes, f"factor marginals of {name!r}"


def _node_marginals_equal_enumeration(
    oracle: MarginalOracle, graph: FactorGraph, tolerance: float, *, name: str
) -> None:
    actual, wanted = oracle.marginals(graph).node, Enumeration().marginals(graph).node
    _assert_all_close(actual, wanted, tolerance, f"variable {{}} of {name!r}")


def _factor_marginals_equal_enumeration(
    oracle: MarginalOracle, graph: FactorGraph, tolerance: float, *, name: str
) -> None:
    actual, wanted = oracle.marginals(graph).factor, Enumeration().marginals(graph).factor
    _assert_all_close(actual, wanted, tolerance, f"factor {{}} of {name!r}")


def _assert_all_close(
    actual: Sequence[Floats], wanted: Sequence[Floats], tolerance: float, what: str
) -> None:
    assert len(actual) == len(wanted), what.format(f"(one of {len(actual)} instead of {len(wanted)})")
    for index, (ours, exact) in enumerate(zip(actual, wanted, strict=True)):
        np.testing.assert_allclose(ours, exact, rtol=0, atol=tolerance, err_msg=what.format(index))


def _log_partition_equals_enumeration(
    oracle: MarginalOracle, graph: FactorGraph, tolerance: float, *, name: str
) -> None:
    actual, wanted = oracle.marginals(graph), Enumeration().marginals(graph)
    _assert_close(actual.log_partition, wanted.log_partition, graph, tolerance, f"log Z of {name!r}")


def _entropy_equals_enumeration(
    oracle: MarginalOracle, graph: FactorGraph, tolerance: float, *, name: str
) -> None:
    actual, wanted = oracle.marginals(graph), Enumeration().marginals(graph)
    _assert_close(actual.entropy, wanted.entropy, graph, tolerance, f"entropy of {name!r}")


def _assert_close(actual: float, wanted: float, graph: FactorGraph, tolerance: float, what: str) -> None:
    size = 1.0 + float(np.abs(graph.tables[np.isfinite(graph.tables)]).max(initial=0.0))
    assert abs(actual - wanted) <= tolerance * size, f"{what}: {actual} instead of {wanted}"


def _marginals_leave_the_graph_alone(oracle: MarginalOracle, graph: FactorGraph, *, name: str) -> None:
    before = _arrays(graph)
    oracle.marginals(graph)
    assert _arrays(graph) == before, f"marginals changed {name!r}"


def _marginals_are_the_same_twice(oracle: MarginalOracle, graph: FactorGraph, *, name: str) -> None:
    first, second = _flat(oracle.marginals(graph)), _flat(oracle.marginals(graph))
    np.testing.assert_array_equal(first, second, err_msg=f"two calls on {name!r}")


def _best_is_a_setting_of_the_graph(oracle: MapOracle, graph: FactorGraph, *, name: str) -> None:
    best = oracle.best(graph)
    assert best.values.dtype == np.int64, f"labels of {name!r} are {best.values.dtype}"
    assert best.values.shape == (graph.n_variables,), f"labels of {name!r}"
    assert ((best.values >= 0) & (best.values < graph.cardinality)).all(), f"labels of {name!r}"


def _best_score_is_the_score_of_its_values(oracle: MapOracle, graph: FactorGraph, *, name: str) -> None:
    best = oracle.best(graph)
    assert best.score == graph.score(best.values), f"score of the best setting of {name!r}"


def _best_score_equals_enumeration(
    oracle: MapOracle, graph: FactorGraph, tolerance: float, *, name: str
) -> None:
    best, wanted = oracle.best(graph), Enumeration().best(graph)
    _assert_close(best.score, wanted.score, graph, tolerance, f"best score of {name!r}")


def _best_leaves_the_graph_alone(oracle: MapOracle, graph: FactorGraph, *, name: str) -> None:
    before = _arrays(graph)
    oracle.best(graph)
    assert _arrays(graph) == before, f"best changed {name!r}"


def _best_is_the_same_twice(oracle: MapOracle, graph: FactorGraph, *, name: str) -> None:
    answers: list[Best] = [oracle.best(graph) for _ in range(2)]
    np.testing.assert_array_equal(answers[0].values, answers[1].values, err_msg=f"two calls on {name!r}")


def _the_impossible_is_refused(
    ask: Callable[[FactorGraph], object], graph: FactorGraph, *, name: str
) -> None:
    try:
        answer = ask(graph)
    except ImpossibleError:
        return
    raise AssertionError(f"{name!r} has no possible setting, but {answer} was returned")


def _arrays(graph: FactorGraph) -> tuple[bytes, ...]:
    parts = (graph.cardinality, graph.scope_start, graph.scope, graph.table_start, graph.tables)
    return tuple(part.tobytes() for part in parts)


def _flat(marginals: Marginals) -> NDArray[np.float64]:
    numbers = [np.array([marginals.log_partition, marginals.entropy])]
    return np.concatenate([np.ravel(p) for p in (*numbers, *marginals.node, *marginals.factor)])
