"""cvxpy with Clarabel, an interior-point solver, on one collective model.

python clarabel_run.py PROBLEM.npz
"""

from __future__ import annotations

import sys
from typing import Any

import cvxpy as cp
import numpy as np
from measuring import objective, serve


def main() -> None:
    problem = dict(np.load(sys.argv[1]))
    node_scores, edge_scores, share = problem["node"], problem["edge"], problem["share"]
    length, labels = share.shape
    pairs = [cp.Variable((labels, labels)) for _ in range(length - 1)]
    nodes = [cp.Variable(labels) for _ in range(length)]
    ones = np.ones((1, labels))
    cost = -cp.sum(cp.entr(nodes[0])) - node_scores[0] @ nodes[0]
    limits = [cp.sum(nodes[0]) == 1]
    for t, pair in enumerate(pairs):
        # the entropy of a chain is that of its first place and those of the moves, given where they begin
        cost += cp.sum(cp.rel_entr(pair, cp.reshape(nodes[t], (labels, 1), order="C") @ ones))
        cost -= cp.sum(cp.multiply(edge_scores[t], pair))
        limits += [cp.sum(pair, axis=1) == nodes[t], cp.sum(pair, axis=0) == nodes[t + 1]]
    for t, node in enumerate(nodes):
        seen = np.flatnonzero(share[t])
        cost += cp.sum(node) - share[t][seen] @ cp.log(node[seen])
    program = cp.Problem(cp.Minimize(cost), limits)

    def solve() -> dict[str, Any]:
        program.solve(solver=cp.CLARABEL, tol_gap_rel=1e-6, tol_gap_abs=1e-6)
        found = np.maximum(np.stack([pair.value for pair in pairs]), 0.0)
        value = objective(node_scores, edge_scores, share, found)
        gap = value - float(problem["best"])
        return {"solver_seconds": program.solver_stats.solve_time, "gap": gap}

    serve(solve, {"solver": f"Clarabel by cvxpy {cp.__version__}"})


if __name__ == "__main__":
    main()
