import numba
import numpy as np
import pytest

from factorwise.kernels.compile.primitives import overlap
from factorwise.kernels.numeric.int_lanes import (
    eight_ints_of,
    first_lanes,
    load_eight_ints,
    sum_eight_ints,
)
from factorwise.kernels.numeric.simd import LANES, dot_eight, eight_of, lane, load_eight
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.templates import PairTemplate, VectorPairTemplate
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition

REALS = np.array(
    [[1.5, -2.0, 0.0, 3.25, -7.5, 2.0, 2.0, -1.0], [1.0, -2.5, 0.0, 4.0, 7.5, 2.0, -2.0, 9.0]], np.float32
)
WHOLE = np.array([[3, -2, 0, 7, 7, 1, 5, -9], [3, 2, 0, 6, 8, 1, -5, -9]], np.int32)

REAL_FUNCTIONS = {
    "difference": lambda p, q: abs(p - q),
    "product": lambda p, q: p * q + 2.0,
    "quotient": lambda p, q: p / (abs(q) + 1.0),
    "smaller": lambda p, q: min(p, q),
    "larger": lambda p, q: max(p, 0.5) - q,
    "equal": lambda p, q: (p == q) + 0.0,
    "below": lambda p, q: (p < q) * p,
    "minus": lambda p, q: -p - 1 + q,
}
WHOLE_FUNCTIONS = {
    "equal": lambda p, q: p == q,
    "other": lambda p, q: p != q,
    "near": lambda p, q: abs(p - q) <= 1,
    "both known": lambda p, q: (p > 0) & (q > 0),
    "either": lambda p, q: (p > 4) | (q < 0),
    "one of them": lambda p, q: (p > 4) ^ (q > 4),
    "count": lambda p, q: (p - q) * 2 + (p == q),
    "at most": lambda p, q: (p <= q) & (q >= p) & True,
}


@pytest.mark.parametrize("name", REAL_FUNCTIONS)
def test_eight_reals_do_what_each_would_do_alone(name):
    function = numba.njit(REAL_FUNCTIONS[name])

    @numba.njit
    def eight(reals, out):
        answer = eight_of(function(load_eight(reals, 0, 0), load_eight(reals, 1, 0)))
        for k in range(LANES):
            out[k] = lane(answer, k)

    out = np.zeros(LANES, np.float32)
    eight(REALS, out)
    alone = [REAL_FUNCTIONS[name](p, q) for p, q in zip(*REALS.astype(float).tolist(), strict=True)]
    np.testing.assert_allclose(out, alone, rtol=1e-6)


@pytest.mark.parametrize("name", WHOLE_FUNCTIONS)
def test_eight_whole_numbers_do_what_each_would_do_alone(name):
    function = numba.njit(WHOLE_FUNCTIONS[name])

    @numba.njit
    def eight(whole, count):
        answer = eight_ints_of(function(load_eight_ints(whole, 0, 0), load_eight_ints(whole, 1, 0)))
        return sum_eight_ints(first_lanes(answer, count))

    alone = [int(WHOLE_FUNCTIONS[name](p, q)) for p, q in zip(*WHOLE.tolist(), strict=True)]
    for count in (0, 1, 5, LANES):
        assert eight(WHOLE, count) == sum(alone[:count])


def test_eight_numbers_meet_their_weights_in_double_precision():
    @numba.njit
    def weighed(reals, weights):
        return dot_eight(load_eight(reals, 0, 0), weights, 2)

    weights = np.linspace(-1.0, 1.0, 12)
    assert weighed(REALS, weights) == pytest.approx(REALS[0].astype(float) @ weights[2:10], rel=1e-14)


def test_overlap_counts_different_values_in_lanes_as_in_plain_python():
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 5, (60, 4))
    fields = Fields(co=rows)
    template = PairTemplate("shared", fields, lambda a, b: (overlap(a.co, b.co),), ["shared"])
    world = Partition.from_labels(np.zeros(60, np.int64))
    compiled = template._totals(world)
    assert compiled[0] == template.within(np.arange(60, dtype=np.int32))[0]
    assert compiled[0] == sum(
        len({v for v in rows[i] if v > 0} & {v for v in rows[j] if v > 0})
        for i in range(60)
        for j in range(i)
    )


def branching(p, q):
    if p > q:
        return p - q
    return 0.5 * (q - p)


def branching_names(a, b):
    return (1 if a.x == b.x else 0, a.x > 2 and b.x > 2)


@pytest.mark.parametrize("width", [3, 8, 37])
def test_a_function_that_branches_runs_number_by_number(width):
    fields = Fields(v=np.random.default_rng(1).normal(size=(20, width)))

    def symmetric(p, q):
        return branching(p, q) + branching(q, p)

    template = VectorPairTemplate("rows", fields, "v", symmetric)
    world = Partition.from_labels(np.arange(20) % 3)
    compiled = template._totals(world)
    np.testing.assert_allclose(compiled, template.statistics(world).to_dense(width), rtol=1e-5)


def test_a_pair_function_that_branches_runs_member_by_member():
    fields = Fields(x=np.random.default_rng(2).integers(0, 5, 40))
    template = PairTemplate("names", fields, branching_names, ["same", "both"])
    world = Partition.from_labels(np.arange(40) % 3)
    compiled = template._totals(world)
    np.testing.assert_array_equal(compiled, template.statistics(world).to_dense(2))


def test_products_and_large_sums_keep_all_their_digits():
    codes = np.random.default_rng(3).integers(-100_000, 100_000, 300)
    fields = Fields(x=codes)
    world = Partition.from_labels(np.zeros(300, np.int64))

    def known(a, b):
        return ((a.x * b.x > 0) & (a.x != b.x), (a.x - b.x) * (a.x - b.x), abs(a.x - b.x))

    template = PairTemplate("far", fields, known, ["known", "square", "distance"])
    compiled = template._totals(world)
    pairs = [(int(codes[i]), int(codes[j])) for i in range(300) for j in range(i)]
    true = [
        sum((p * q > 0) and p != q for p, q in pairs),
        sum((p - q) ** 2 for p, q in pairs),
        sum(abs(p - q) for p, q in pairs),
    ]
    np.testing.assert_allclose(compiled, true, rtol=1e-15)


@pytest.mark.parametrize("largest", [1_000, 2**30])
def test_differences_keep_all_their_digits_whatever_the_size_of_the_codes(largest):
    codes = np.random.default_rng(4).integers(-largest, largest, 300)
    template = PairTemplate("far", Fields(x=codes), lambda a, b: (abs(a.x - b.x),), ["distance"])
    world = Partition.from_labels(np.zeros(300, np.int64))
    compiled = template._totals(world)
    true = sum(abs(int(codes[i]) - int(codes[j])) for i in range(300) for j in range(i))
    assert compiled[0] == pytest.approx(true, rel=1e-15)


def test_and_or_and_not_mean_the_same_in_lanes():
    fields = Fields(
        x=np.random.default_rng(5).integers(0, 4, 70), y=np.random.default_rng(6).integers(0, 4, 70)
    )

    def judged(a, b):
        known = a.x > 0 and b.x > 0
        return (
            known and a.x != b.x,
            a.x == b.x or a.y == b.y,
            not known,
            a.y == b.y and not (known or a.x == b.x),
        )

    template = PairTemplate("judged", fields, judged, ["other", "either", "unknown", "mixed"])
    world = Partition.from_labels(np.arange(70) % 2)
    compiled = template._totals(world)
    np.testing.assert_array_equal(compiled, template.statistics(world).to_dense(4))
    (program,) = model_programs(Model([template]), world).templates
    assert "_lanes" in program.functions["gain"].text
