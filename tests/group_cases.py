"""Links whose components are searched in groups; workers of a cluster import them by name."""

import numpy as np

from factorwise.inference.mcmc.shards.component_search import LinkWeights, ScoredLinks


def planted_groups(entities=60, seed=0, size=6):
    """Links in pairs of entities that some doubtful ones tie, and entities of which nothing is open."""
    rng = np.random.default_rng(seed)
    n = entities * size
    truth = np.arange(n) // size
    first, second, score = [], [], []
    for one in range(n):
        for two in range(one + 1, min(n, (one // (2 * size) + 1) * 2 * size)):
            same = truth[one] == truth[two]
            closed = one // (2 * size) % 3 == 2
            if closed and not same:
                continue
            if closed or rng.random() < (0.8 if same else 0.4):
                first.append(one)
                second.append(two)
                score.append(2.0 if closed else rng.normal(1.0 if same else -0.8, 1.2))
    order = rng.permutation(n)
    return ScoredLinks(
        order[first].astype(np.int32),
        order[second].astype(np.int32),
        np.array(score, np.float32),
        LinkWeights(-0.25, 0.0),
        np.ones(n, np.int32),
        np.zeros(n, np.uint64),
    )
