"""The layout of links by item against a plain one."""

import numpy as np
import pytest

from factorwise.world.links import LinkGraph
from reference import links as reference


@pytest.mark.parametrize("n", [1, 2, 9, 30])
def test_links_are_laid_out_as_by_the_plain_twin(n):
    rng = np.random.default_rng(n)
    pairs = [
        (i, j) if rng.random() < 0.5 else (j, i) for i in range(n) for j in range(i) if rng.random() < 0.4
    ]
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    graph = LinkGraph.from_pairs(n, first, second)
    found = graph.start.tolist(), graph.neighbor.tolist(), graph.pair.tolist()
    assert found == reference.link_rows(n, first, second)
