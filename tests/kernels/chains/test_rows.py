"""Rows in registers against the same operations in NumPy, padding included."""

import numba
import numpy as np
import pytest

from factorwise.kernels.chains.chain_rows import FORBIDDEN
from factorwise.kernels.chains.rows import (
    GROUP,
    add_scaled,
    exponential,
    first_place,
    greater,
    groups_of,
    keep_where,
    largest,
    load_row,
    prefetch_row,
    square_root,
    store_row,
    sum_of,
    zero_row,
)
from thinning import thinned

KINDS = thinned(range(1, 6), (np.float64, np.float32))
EXP_ERROR = {np.float64: 4e-16, np.float32: 2.4e-7}  # relative: about two units in the last place
EXP_RANGE = {np.float64: (-708.0, 709.0), np.float32: (-87.0, 88.0)}


@numba.njit
def every_operation(groups, table, factor, bits, out, number):
    """Write what the operations make of rows 0 and 1 of the table; the first to the last row of ``out``."""
    first, second = load_row(groups, table, 0), load_row(groups, table, np.int32(1))
    prefetch_row(groups, table, 2)
    store_row(out, 0, first + second)
    store_row(out, 1, first - second)
    store_row(out, 2, first * second)
    store_row(out, 3, first + factor)
    store_row(out, 4, factor - first)
    store_row(out, 5, first * 3)
    store_row(out, 6, greater(first, second))
    store_row(out, 7, greater(first, 0.25))
    store_row(out, 8, add_scaled(first, factor, table, 2))
    store_row(out, 9, exponential(first))
    store_row(out, np.int32(10), zero_row(groups, table))
    store_row(out, 11, first / second)
    store_row(out, 12, factor / first)
    store_row(out, 13, square_root(second))
    store_row(out, 14, keep_where(first, bits, 1))
    number[0] = sum_of(first)
    number[1] = largest(first)
    number[2] = first_place(first, largest(first))
    number[3] = first_place(second, 0.0)
    number[4] = first_place(second, 1.0)
    number[5] = first_place(second, -5.0)


def operands(count, dtype):
    """Three rows: random numbers, small whole numbers with many ties, random numbers."""
    rng = np.random.default_rng(count)
    table = rng.normal(scale=3.0, size=(3, GROUP * count)).astype(dtype)
    table[1] = rng.integers(0, 3, size=GROUP * count)
    return table


def results(count, dtype, table, factor=0.7):
    out = np.full((15, GROUP * count), np.nan, dtype=dtype)
    number = np.full(6, np.nan)
    bits = np.random.default_rng(count).integers(0, 256, size=(2, count), dtype=np.uint8)
    every_operation((0,) * count, table, factor, bits, out, number)
    kept = np.unpackbits(bits[1], bitorder="little").astype(bool)
    np.testing.assert_array_equal(out[14], np.where(kept, table[0], 0.0))
    return out, number


def first_equal(row, value):
    places = np.flatnonzero(row == value)
    return places[0] if len(places) else len(row)


@pytest.mark.parametrize(("count", "dtype"), KINDS)
def test_rows_do_what_numpy_does(count, dtype):
    table, factor = operands(count, dtype), dtype(0.7)
    first, second, third = table
    out, number = results(count, dtype, table)
    for index, wanted in enumerate(
        [first + second, first - second, first * second, first + factor, factor - first, first * dtype(3)]
    ):
        np.testing.assert_array_equal(out[index], wanted)
    np.testing.assert_array_equal(out[6], np.maximum(first, second))
    np.testing.assert_array_equal(out[7], np.maximum(first, dtype(0.25)))
    rounding = np.finfo(dtype).eps * (abs(first) + abs(third))  # product and sum may be rounded once or twice
    assert (abs(out[8] - (first + factor * third)) <= rounding).all()
    np.testing.assert_allclose(out[9], np.exp(first.astype(np.float64)), rtol=EXP_ERROR[dtype])
    assert (out[10] == 0.0).all()
    unit = np.finfo(dtype).eps
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(out[11], first / second, rtol=unit)
    np.testing.assert_allclose(out[12], factor / first, rtol=unit)
    np.testing.assert_allclose(out[13], np.sqrt(second), rtol=unit)
    bound = len(first) * np.finfo(dtype).eps * abs(first).sum()
    assert number[0] == pytest.approx(first.astype(np.float64).sum(), rel=0, abs=float(bound))
    assert number[1] == first.max()


@pytest.mark.parametrize(("count", "dtype"), KINDS)
def test_the_first_place_is_found_among_ties_and_past_the_end_if_there_is_none(count, dtype):
    table = operands(count, dtype)
    _, number = results(count, dtype, table)
    assert number[2:].tolist() == [
        first_equal(table[0], table[0].max()),
        first_equal(table[1], 0.0),
        first_equal(table[1], 1.0),
        GROUP * count,
    ]
    for place in (0, GROUP * count - 1):
        table[0] = -2.0
        table[0, place:] = 1.5
        assert results(count, dtype, table)[1][2] == place


@pytest.mark.parametrize(("count", "dtype"), KINDS)
def test_the_largest_and_the_first_of_its_kind_are_found_among_forbidden_numbers(count, dtype):
    table = operands(count, dtype)
    table[0] = FORBIDDEN
    assert results(count, dtype, table)[1][2] == 0
    for place in {1, GROUP * count - 1}:
        table[0], table[0, place] = -np.inf, -1e20
        _, number = results(count, dtype, table)
        assert number[1] == table[0, place]
        assert number[2] == place


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_exponential_stays_within_its_error_over_its_whole_range(dtype):
    low, high = EXP_RANGE[dtype]
    awkward = [low, high, 0.0, -0.0, 1e-30, -1e-30, 1.0, -1.0, *(np.log(2.0) * (np.arange(-120, 120) + 0.5))]
    points = np.concatenate([np.array(awkward), np.linspace(low, high, 20_000), np.linspace(-1, 1, 5_000)])
    points = points[: len(points) // GROUP * GROUP].astype(dtype)
    points = np.clip(points, dtype(low), dtype(high))
    for chunk in points.reshape(-1, GROUP):
        out, _ = results(1, dtype, np.vstack([chunk, chunk, chunk]))
        np.testing.assert_allclose(
            out[9].astype(np.float64), np.exp(chunk.astype(np.longdouble)), rtol=EXP_ERROR[dtype]
        )


@pytest.mark.parametrize(("count", "dtype"), [(1, np.float64), (3, np.float32)])
def test_the_exponential_is_exactly_zero_below_its_limit(count, dtype):
    low, _ = EXP_RANGE[dtype]
    beyond = [np.nextafter(dtype(low), dtype(-np.inf)), low - 1, low * 2, -1e4, -1e20, FORBIDDEN, -np.inf]
    table = np.zeros((3, GROUP * count), dtype=dtype)
    table[0, -len(beyond) :] = beyond
    out, _ = results(count, dtype, table)
    assert (out[9, -len(beyond) :] == 0.0).all()
    assert (out[9, : -len(beyond)] == 1.0).all()


@pytest.mark.parametrize(("labels", "count"), [(0, 1), (1, 1), (8, 1), (9, 2), (16, 2), (22, 3), (40, 5)])
def test_labels_are_rounded_up_to_groups_of_eight(labels, count):
    assert groups_of(labels) == (0,) * count
