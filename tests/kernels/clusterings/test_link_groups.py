"""Links sorted by components, and chances to stay, compiled and plain."""

import numpy as np

from factorwise.kernels.clusterings import link_groups
from factorwise.kernels.graphs.components import component_numbers
from reference import link_groups as plain

N, LINKS = 40, 70


def links(seed):
    draws = np.random.default_rng(seed)
    pairs = np.unique(np.sort(draws.integers(N, size=(LINKS, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]].astype(np.int32)
    return pairs[:, 0].copy(), pairs[:, 1].copy(), draws.normal(0.0, 2.0, len(pairs)).astype(np.float32)


def both(name, inputs, *outputs):
    """Call a kernel and its twin; return what each wrote."""
    written = []
    for module in (link_groups, plain):
        copies = [each.copy() for each in outputs]
        getattr(module, name)(*inputs, *copies)
        written.append(copies)
    return written


def test_counting_and_sorting(seed):
    given = links(seed)
    good = given[2] > 0
    component = component_numbers(N, given[0][good], given[1][good])
    draws = np.random.default_rng(seed)
    group = draws.integers(-1, 3, N).astype(np.int32)
    empty = np.zeros(N, np.int64), np.full(N, np.inf, np.float32)
    for compiled, expected in zip(*both("count_positive", (*given, component), *empty), strict=True):
        np.testing.assert_array_equal(compiled, expected)
    counts, twins = both("count_inside", (*given, component, group), np.zeros(3, np.int64), np.zeros(1))
    np.testing.assert_array_equal(counts[0], twins[0])
    np.testing.assert_allclose(counts[1], twins[1], rtol=1e-5)
    place = draws.permutation(N).astype(np.int32)
    end = np.append(0, np.cumsum(twins[0]))
    room = np.zeros((2, end[-1]), np.int32)
    outputs = end[:-1], room[0], room[1], np.zeros(end[-1], np.float32)
    for compiled, expected in zip(
        *both("scatter_links", (*given, component, group, place), *outputs), strict=True
    ):
        np.testing.assert_array_equal(compiled, expected)


def test_rows_and_chances(seed):
    given, low, count = links(seed), 7, 25
    start = np.zeros(count + 1, np.int64)
    nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
    counted = [start.copy(), start.copy()]
    for module, counts in zip((link_groups, plain), counted, strict=True):
        module.rows_of_links(*given, low, counts, *nothing, False)
    assert np.array_equal(*counted)
    start = np.cumsum(counted[0])
    written = []
    for module in (link_groups, plain):
        rows = start.copy(), np.zeros(start[-1], np.int32), np.zeros(start[-1], np.float32)
        module.rows_of_links(*given, low, *rows, True)
        written.append(rows)
    for compiled, expected in zip(*written, strict=True):
        np.testing.assert_array_equal(compiled, expected)
    neighbor, score = written[0][1:]
    draws = np.random.default_rng(seed)
    label = draws.integers(0, N // 3, N).astype(np.int32)
    counts = draws.integers(1, 3, N).astype(np.int32)
    records = np.bincount(label, weights=counts, minlength=N).astype(np.int64)
    source = np.uint64(1) << draws.integers(0, 8, N).astype(np.uint64)
    held = np.zeros(N, np.uint64)
    held[: N // 6] = 3
    weights = np.array([-0.4, 0.2])
    inputs = (start, neighbor, score, low, label, counts, records, source, held, weights, 0.8)
    scratch = np.zeros(N), np.full(N, -1, np.int32), np.zeros(count, np.float32)
    compiled, expected = both("stay_chances", inputs, *scratch)
    np.testing.assert_allclose(compiled[2], expected[2], rtol=1e-5, atol=1e-7)
