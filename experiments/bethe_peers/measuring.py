"""What the peers share: they prepare a problem, say so, and solve it once for each line they are sent."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def serve(solve: Callable[[], dict[str, Any]], ready: dict[str, Any]) -> None:
    """Answer each line of standard input with the seconds of one solution, CPU and wall, and what it says."""
    print(json.dumps(ready), flush=True)
    for _ in sys.stdin:
        begin, began = time.process_time(), time.perf_counter()
        told = solve()
        wall, cpu = time.perf_counter() - began, time.process_time() - begin
        print(json.dumps({"cpu": cpu, "wall": wall, **told}), flush=True)


def objective(node_scores: Any, edge_scores: Any, share: Any, edge: Any) -> float:
    """Objective of one member from marginals of pairs, normalized first; ``share`` is counts by N."""
    edge = np.asarray(edge, dtype=np.float64)
    edge = edge / edge.sum(axis=(1, 2), keepdims=True)
    node = np.vstack([edge.sum(axis=2), edge[-1].sum(axis=0)[None]])

    def negative_entropy(p: Any) -> float:
        return float(np.sum(p * np.log(np.maximum(p, 1e-300))))

    linear = -float((edge_scores * edge).sum()) - float((node_scores * node).sum())
    poisson = float(node.sum()) - float((share * np.log(np.maximum(node, 1e-300))).sum())
    return linear + negative_entropy(edge) - negative_entropy(node[1:-1]) + poisson
