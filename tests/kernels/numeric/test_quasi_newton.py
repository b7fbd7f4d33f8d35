"""The compiled vector work of quasi-Newton methods against its plain twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.numeric import quasi_newton as kernels
from factorwise.learning.optimizers.history import PairProducts
from reference import quasi_newton as reference

MEMORY = 3


class Vectors:
    """Random vectors, many of whose weights are zero, in the kernels' layout."""

    def __init__(self, seed, size, dtype=np.float64, *, l1=0.3, masked=False):
        rng = np.random.default_rng(seed)
        self.l1, self.l2 = l1, 0.2
        self.weights, self.before = (rng.normal(size=size) * rng.integers(0, 2, size=size) for _ in range(2))
        self.raw, self.gradient_before = rng.normal(size=(2, size)) * 0.5
        self.steps, self.changes = rng.normal(size=(2, MEMORY, size)).astype(dtype)
        self.penalized = rng.random(size) < 0.5 if masked else np.zeros(0, dtype=bool)
        self.prices = np.where(self.penalized, l1, 0.0) if masked else np.full(size, l1)
        self.factors = rng.normal(size=(2, MEMORY))
        self.chunks = -(-size // kernels.CHUNK)
        self.scratch = np.full((self.chunks, 2, kernels.TILE), np.nan)
        self.sums = np.full((self.chunks, kernels.SUMS), np.nan)
        self.products = np.full((self.chunks, MEMORY, 4), np.nan)
        self.direction_sums = np.full((self.chunks, 2), np.nan)
        self.gradient, self.direction, self.trial = np.full((3, size), np.nan)

    def absorb(self, first, last, slot=1, rows=MEMORY):
        kernels.absorb(
            *(first, last, self.weights, self.raw, self.l2, self.l1, self.penalized),
            *(self.before, self.gradient_before, self.steps, self.changes, rows, slot),
            *(self.gradient, self.scratch, self.sums, self.products),
        )

    def combine(self, first, last, rows=MEMORY, strict=True, length=0.7):
        kernels.combine(
            *(first, last, self.weights, self.raw, self.l1, self.penalized, self.steps, self.changes, rows),
            *(self.factors[0], self.factors[1], -0.8, strict, length),
            *(self.direction, self.trial, self.scratch, self.direction_sums),
        )

    def pairs(self, rows=MEMORY):
        return list(zip(self.steps[:rows].tolist(), self.changes[:rows].tolist(), strict=True))


cases = st.builds(
    Vectors,
    st.integers(0, 10**6),
    st.sampled_from([1, 7, kernels.TILE, kernels.TILE + 3]),
    st.sampled_from([np.float32, np.float64]),
    l1=st.sampled_from([0.0, 0.3]),
    masked=st.booleans(),
)


@given(cases, st.integers(0, MEMORY - 1))
def test_absorbing_a_point_gives_the_twins_pair_sums_and_products(case, slot):
    expected = reference.absorb(
        *(case.weights.tolist(), case.raw.tolist(), case.l2, case.prices.tolist()),
        *(case.before.tolist(), case.gradient_before.tolist(), case.pairs()),
    )
    case.absorb(0, case.chunks, slot)
    single = case.steps.dtype == np.float32
    near = {"rtol": 1e-5, "atol": 1e-4} if single else {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(case.gradient, expected.gradient, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(case.steps[slot], expected.step, rtol=1e-6 if single else 1e-15, atol=1e-15)
    np.testing.assert_allclose(
        case.changes[slot], expected.change, rtol=1e-6 if single else 1e-13, atol=1e-14
    )
    np.testing.assert_allclose(case.sums.sum(axis=0), expected.sums, **near)
    others = [row for row in range(MEMORY) if row != slot]
    np.testing.assert_allclose(case.products.sum(axis=0)[others], np.array(expected.products)[others], **near)
    assert (case.products[:, slot] == 0.0).all()


@given(cases, st.integers(0, MEMORY), st.booleans())
def test_combining_gives_the_twins_direction_and_first_step(case, rows, strict):
    factors = case.factors[:, :rows].tolist()
    expected = reference.combine(
        case.weights.tolist(),
        case.raw.tolist(),
        case.prices.tolist(),
        case.pairs(rows),
        *factors,
        -0.8,
        strict,
    )
    case.combine(0, case.chunks, rows, strict)
    np.testing.assert_allclose(case.direction, expected, rtol=1e-11, atol=1e-12)
    walked = reference.walk(case.weights.tolist(), case.direction.tolist(), 0.7, case.prices.tolist())
    np.testing.assert_allclose(case.trial, walked, rtol=1e-14, atol=1e-15)
    slopes = reference.pseudo_gradient(case.weights.tolist(), case.raw.tolist(), case.prices.tolist())
    sums = [reference.dot(expected, slopes), reference.dot(expected, expected)]
    np.testing.assert_allclose(case.direction_sums.sum(axis=0), sums, rtol=1e-10, atol=1e-10)


@given(cases, st.floats(0.01, 3.0))
def test_walking_gives_the_twins_point(case, length):
    case.direction[:] = case.raw
    kernels.walk(
        *(0, case.chunks, case.weights, case.direction, length, case.l1, case.penalized),
        *(case.trial, case.scratch),
    )
    expected = reference.walk(case.weights.tolist(), case.raw.tolist(), length, case.prices.tolist())
    np.testing.assert_allclose(case.trial, expected, rtol=1e-14, atol=1e-15)
    if case.l1 > 0.0 and not len(case.penalized):
        assert (case.trial * case.weights >= 0.0).all()


@pytest.mark.parametrize("work", ["absorb", "combine"])
def test_chunks_worked_on_apart_give_the_same_bits(work):
    size = 2 * kernels.CHUNK + 5
    whole, parts = (Vectors(3, size, np.float32) for _ in range(2))
    getattr(whole, work)(0, 3)
    for first, last in ((2, 3), (0, 2)):
        getattr(parts, work)(first, last)
    for name in ("gradient", "steps", "changes", "sums", "products", "direction", "trial", "direction_sums"):
        assert getattr(whole, name).tobytes() == getattr(parts, name).tobytes()


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_the_recursion_on_inner_products_is_the_bfgs_matrix_times_the_gradient(pairs):
    """Five pairs through three slots: those that were overwritten must leave no trace."""
    rng = np.random.default_rng(pairs)
    size = 6
    hessian = rng.normal(size=(size, size))
    hessian = hessian @ hessian.T + np.eye(size)
    small, kept, slots = PairProducts(MEMORY), [], []
    steps, changes = np.zeros((2, MEMORY, size))
    weights, gradient = np.zeros(size), rng.normal(size=size)
    room = np.zeros((1, 2, kernels.TILE)), np.zeros((1, kernels.SUMS)), np.zeros((1, MEMORY, 4))
    nobody = np.zeros(0, dtype=bool)
    for number in range(pairs):
        slot = number % MEMORY
        if len(small.order) == MEMORY:
            small.order.pop(0)
        step = rng.normal(size=size)
        new_gradient = np.zeros(size)
        kernels.absorb(
            *(0, 1, weights + step, gradient + hessian @ step, 0.0, 0.0, nobody, weights, gradient),
            *(steps, changes, MEMORY, slot, new_gradient, *room),
        )
        small.add(slot, room[1].sum(axis=0), room[2].sum(axis=0))
        weights, gradient = weights + step, new_gradient
        kept.append((step.tolist(), (hessian @ step).tolist()))
        slots.append(slot)
    step_factors, change_factors, slope_factor = small.factors()
    direction = step_factors @ steps + change_factors @ changes + slope_factor * gradient
    expected = reference.inverse_times(kept[-MEMORY:], gradient.tolist())
    assert small.order == slots[-MEMORY:]
    np.testing.assert_allclose(direction, -np.array(expected), rtol=1e-9, atol=1e-11)
