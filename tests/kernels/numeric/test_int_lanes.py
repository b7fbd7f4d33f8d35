import numba
import numpy as np
import pytest

from factorwise.kernels.compile.binding import Bound
from factorwise.kernels.compile.primitives import overlap
from factorwise.kernels.numeric.int_lanes import (
    HIGHEST,
    SIXTEEN,
    first_of_sixteen,
    load_sixteen_ints,
    sixteen_ints_of,
    sum_sixteen_ints,
)
from factorwise.kernels.walks.frames import make_frame, run
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.templates import PairTemplate
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition

CODES = np.array(
    [
        [3, 2, 0, 7, 7, 1, 40_000, HIGHEST, 5, 0, 32_767, 32_768, 9, 9, 1, 65_533],
        [3, 0, 0, 6, 8, 1, 40_001, HIGHEST, 6, 1, 32_768, 32_767, 9, 8, 2, 65_533],
    ],
    np.int32,
)
FUNCTIONS = {
    "equal": lambda p, q: p == q,
    "other": lambda p, q: p != q,
    "below": lambda p, q: p < q,
    "at most": lambda p, q: (p <= q) & (q >= p) & True,
    "both known": lambda p, q: (p > 0) & (q > 0),
    "either": lambda p, q: (p > 40_000) | (q == 0),
    "one of them": lambda p, q: (p > 4) ^ (q > 4),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sixteen_codes_do_what_each_would_do_alone(name):
    function = numba.njit(FUNCTIONS[name])

    @numba.njit
    def sixteen(codes, count):
        answer = sixteen_ints_of(function(load_sixteen_ints(codes, 0, 0), load_sixteen_ints(codes, 1, 0)))
        return sum_sixteen_ints(first_of_sixteen(answer, count))

    alone = [int(FUNCTIONS[name](p, q)) for p, q in zip(*CODES.tolist(), strict=True)]
    for count in range(SIXTEEN + 1):
        assert sixteen(CODES, count) == sum(alone[:count])


def test_differences_of_sixteen_sums_are_read_as_signed():
    @numba.njit
    def difference(codes):
        return sum_sixteen_ints(sixteen_ints_of(1) - sixteen_ints_of(load_sixteen_ints(codes, 0, 0) == 7))

    assert difference(CODES) == SIXTEEN - 2
    assert numba.njit(lambda: sum_sixteen_ints(sixteen_ints_of(0) - sixteen_ints_of(5)))() == -5 * SIXTEEN


def judged(a, b):
    """Whole numbers, compared only: fit for sixteen lanes."""
    shared = overlap(a.co, b.co)
    known = a.x > 0 and b.x > 0
    return (a.x == b.x, known and a.x != b.x, not known, shared, shared > 1, a.co[0] == b.co[0], True)


def with_a_sum(a, b):
    return (a.x + 1 == b.x or b.x + 1 == a.x, a.x == b.x)


def with_a_negative_constant(a, b):
    return (a.x > -1 and b.x > -1, a.x == b.x)


def with_a_large_constant(a, b):
    return (a.x < 70_000 and b.x < 70_000, a.x == b.x)


def with_a_large_statistic(a, b):
    return (a.x == b.x, 9_000)


def with_fields_handed_on(a, b):
    return (abs(a.x - b.x), a.x == b.x)


def gain_of(function, fields, labels, item, target):
    """Gain by the compiled function of moving ``item``, and the text that was compiled."""
    world = Partition.from_labels(labels)
    size = len(function(*fields.records([0, 0])))
    template = PairTemplate("pairs", fields, function, [f"s{k}" for k in range(size)])
    weights = np.sqrt(np.arange(2.0, 2.0 + size))
    (program,), arrays = model_programs(Model([template], weights), world)
    empty = np.ones(arrays.ints.shape[1], bool)
    empty[arrays.slot] = False
    arrays.ints[:, empty] = 2**31 - 1  # past the last member lies anything
    frame = make_frame(arrays, np.zeros(2, np.uint64), weights=size)
    frame.step["item"], frame.step["source"], frame.step["target"] = item, labels[item], target
    return run(Bound(program, frame), "gain"), weights, program.functions["gain"].text


@pytest.mark.parametrize(
    "function",
    [
        judged,
        with_a_sum,
        with_a_negative_constant,
        with_a_large_constant,
        with_a_large_statistic,
        with_fields_handed_on,
    ],
)
@pytest.mark.parametrize("sizes", [(1, 1), (15, 17), (16, 33), (70, 3)])
@pytest.mark.parametrize("highest", [5, HIGHEST, HIGHEST + 1])
def test_gains_in_lanes_are_those_of_the_plain_function(function, sizes, highest):
    rng = np.random.default_rng(sum(sizes))
    n = sum(sizes)
    x = rng.integers(0, 4, n)
    x[0], x[-1] = highest, highest
    co = rng.integers(0, 6, (n, 3))
    fields = Fields(x=x, co=co)
    labels = np.repeat([0, 1], sizes)
    answer, weights, _ = gain_of(function, fields, labels, n - 1, 0)
    records = fields.records(range(n))
    more = sum(np.array(function(records[-1], b), float) for b in records[: sizes[0]])
    less = sum(
        (np.array(function(records[-1], b), float) for b in records[sizes[0] : -1]), start=0.0 * weights
    )
    assert answer == pytest.approx(float(weights @ (more - less)), rel=1e-12, abs=1e-9)


def test_only_codes_that_are_compared_go_sixteen_at_a_time():
    def lanes(function, highest):
        fields = Fields(x=np.array([0, 1, highest]), co=np.ones((3, 3), np.int64))
        return "first_of_sixteen(sixteen_ints_of(" in gain_of(function, fields, np.array([0, 0, 1]), 2, 0)[2]

    assert lanes(judged, HIGHEST)
    assert not lanes(judged, HIGHEST + 1)
    assert not lanes(with_a_sum, 9)
    assert not lanes(with_a_negative_constant, 9)
    assert not lanes(with_a_large_constant, 9)
    assert not lanes(with_a_large_statistic, 9)
    assert not lanes(with_fields_handed_on, 9)


def test_sums_over_clusters_of_any_size_are_exact():
    sizes = 150_000, 90_000  # eight shared values a pair: 16 bits hold those of 65,000 members
    co = np.tile(np.arange(1, 9), (sum(sizes), 1))
    answer, weights, _ = gain_of(
        lambda a, b: (overlap(a.co, b.co),), Fields(co=co), np.repeat([0, 1], sizes), 200_000, 0
    )
    assert answer == pytest.approx(weights[0] * 8 * (sizes[0] - sizes[1] + 1), rel=1e-12)
