"""An Ising grid: belief propagation, which is fast and approximate, against the junction tree."""

import numpy as np

import factorwise as fw

SIDE, COUPLING = 8, 0.3
rng = np.random.default_rng(1)

spins = fw.Column.hidden("spin", fw.Domain("spin", [-1, 1]), SIDE * SIDE)
number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
links = np.vstack(
    [
        np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
        np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
    ]
)
variables = fw.Variables([spins])
field = rng.normal(scale=0.5, size=SIDE * SIDE)
model = fw.Model(
    [
        fw.templates.Tables(variables, number.reshape(-1, 1), np.outer(field, [-1, 1]), name="field"),
        fw.templates.Tables(variables, links, COUPLING * np.array([[1, -1], [-1, 1]]), name="coupling"),
    ]
)

graph = fw.unroll(model, variables)
exact = fw.exact.JunctionTree().marginals(graph)
beliefs = fw.message_passing.BeliefPropagation().marginals(graph)
worst = max(np.abs(p - q).max() for p, q in zip(exact.node, beliefs.node, strict=True))
assert beliefs.convergence is not None
print(f"belief propagation: {beliefs.convergence.iterations} sweeps, log Z {beliefs.log_partition:.4f}")
print(f"junction tree of width {fw.exact.JunctionTree().treewidth(graph)}: log Z {exact.log_partition:.4f}")
print(f"largest error of a marginal: {worst:.4f}")
