"""The algebra of log-factors against sums and products of plain numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import ImpossibleError, InvalidArgumentError, ShapeError
from factorwise.model.factor import Factor, expectation, log_sum_exp, product

CARDINALITY = (2, 3, 2, 1)


def table_of(factor, scope):
    """Plain values of a factor over a larger scope."""
    sizes = [CARDINALITY[v] for v in scope]
    return np.exp(factor.expanded(scope, sizes).table)


@st.composite
def factors(draw):
    scope = draw(st.lists(st.integers(0, 3), max_size=4, unique=True))
    shape = [CARDINALITY[v] for v in scope]
    count = int(np.prod(shape, dtype=int))
    values = draw(st.lists(st.sampled_from([-np.inf, -2.0, 0.0, 0.5, 1.0]), min_size=count, max_size=count))
    return Factor(tuple(scope), np.reshape(values, shape))


@given(factors(), factors())
def test_product_multiplies_values_over_the_union_of_scopes(left, right):
    both = left * right
    assert set(both.scope) == set(left.scope) | set(right.scope)
    wanted = table_of(left, both.scope) * table_of(right, both.scope)
    np.testing.assert_allclose(np.exp(both.table), wanted, rtol=1e-12)


@given(factors(), factors())
def test_summing_out_what_one_factor_lacks_leaves_it_a_common_multiplier(left, right):
    own = [v for v in right.scope if v not in left.scope]
    together, apart = (left * right).sum_out(*own), left * right.sum_out(*own)
    assert set(together.scope) == set(apart.scope)
    np.testing.assert_allclose(table_of(together, range(4)), table_of(apart, range(4)), rtol=1e-12)


@given(factors(), st.sets(st.integers(0, 3)))
def test_sum_out_and_max_out_reduce_values_along_their_axes(factor, chosen):
    out = [v for v in factor.scope if v in chosen]
    axes = tuple(factor.scope.index(v) for v in out)
    values = np.exp(factor.table)
    np.testing.assert_allclose(np.exp(factor.sum_out(*out).table), values.sum(axis=axes), rtol=1e-12)
    np.testing.assert_array_equal(np.exp(factor.max_out(*out).table), values.max(axis=axes))
    assert factor.sum_out(*out).scope == tuple(v for v in factor.scope if v not in chosen)


@given(factors(), factors())
def test_quotient_undoes_a_product_wherever_the_divisor_is_not_zero(left, right):
    both = left * right
    back = (both / right).expanded(both.scope, both.cardinality).table
    defined = right.expanded(both.scope, both.cardinality).table > -np.inf
    np.testing.assert_allclose(back[defined], left.expanded(both.scope, both.cardinality).table[defined])
    assert (back[~defined] == -np.inf).all()


@given(factors(), st.dictionaries(st.integers(0, 3), st.just(0)))
def test_condition_takes_the_slice_at_the_labels(factor, labels):
    held = factor.condition(labels)
    assert held.scope == tuple(v for v in factor.scope if v not in labels)
    for setting in np.ndindex(*held.cardinality):
        full = {**dict(zip(held.scope, setting, strict=True)), **labels}
        assert held.table[setting] == factor.table[tuple(full[v] for v in factor.scope)]


def test_scope_order_does_not_change_the_function():
    table = np.arange(6.0).reshape(2, 3)
    turned = Factor((1, 0), table.T)
    np.testing.assert_array_equal(turned.expanded((0, 1), (2, 3)).table, table)
    np.testing.assert_array_equal((Factor((0, 1), table) * turned).table, 2 * table)


def test_product_of_nothing_is_one():
    assert product([]).scope == ()
    assert float(product([]).table) == 0.0


def test_product_can_be_laid_out_in_a_given_order():
    pair = product([Factor((0,), [0.0, 1.0]), Factor((1,), [0.0, 2.0, 4.0])], (1, 0))
    np.testing.assert_array_equal(pair.table, [[0, 1], [2, 3], [4, 5]])


def test_normalized_values_sum_to_one_even_where_exp_would_overflow():
    factor = Factor((0, 1), [[1000.0, 1000.0], [-np.inf, 1000.0]])
    np.testing.assert_allclose(factor.probabilities(), [[1 / 3, 1 / 3], [0, 1 / 3]])
    assert factor.log_total() == pytest.approx(1000 + np.log(3))
    assert factor.normalized().log_total() == pytest.approx(0.0)


def test_log_sum_exp_of_forbidden_rows_is_forbidden_without_a_warning():
    table = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    np.testing.assert_array_equal(log_sum_exp(table, (1,)), [-np.inf, 0.0])
    assert Factor((0, 1), np.full((2, 2), -np.inf)).log_total() == -np.inf


def test_expectation_counts_forbidden_entries_of_probability_zero_as_nothing():
    assert expectation(np.array([0.0, 0.25, 0.75]), np.array([-np.inf, 4.0, 8.0])) == 7.0


def test_argmax_names_the_first_largest_entry():
    assert Factor((7, 3), [[0.0, 2.0], [2.0, 1.0]]).argmax() == {7: 0, 3: 1}


def test_operations_leave_their_operands_alone():
    left, right = Factor((0,), [0.0, -np.inf]), Factor((0, 1), np.ones((2, 2)))
    _ = left * right, right.sum_out(0), right.normalized(), left.expanded((0, 1), (2, 2))
    np.testing.assert_array_equal(left.table, [0.0, -np.inf])
    np.testing.assert_array_equal(right.table, np.ones((2, 2)))


def test_an_expanded_factor_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Factor((0,), [0.0, 1.0]).expanded((0, 1), (2, 2)).table[0, 0] = 5.0


@pytest.mark.parametrize(
    ("make", "error", "remedy"),
    [
        (lambda: Factor((0, 0), np.zeros((2, 2))), InvalidArgumentError, "free of repetitions"),
        (lambda: Factor((0,), np.zeros((2, 2))), ShapeError, "reshape the table or change the scope"),
        (lambda: Factor((0,), [0.0, np.nan]), InvalidArgumentError, "finite, or -inf for zero"),
        (lambda: Factor((0,), [0.0, np.inf]), InvalidArgumentError, "finite, or -inf for zero"),
        (lambda: Factor((0,), [0.0, 0.0]) * Factor((0,), [0.0] * 3), ShapeError, "over the same domain"),
        (lambda: Factor((0,), [0.0]).sum_out(1), InvalidArgumentError, r"in the scope \(0,\)"),
        (lambda: Factor((0,), [0.0]).max_out(1), InvalidArgumentError, r"in the scope \(0,\)"),
        (lambda: Factor((0,), [0.0]).condition({0: 1}), InvalidArgumentError, "from 0 to 0"),
        (lambda: Factor((0,), [0.0]).expanded((1,), (2,)), InvalidArgumentError, r"superset of \(0,\)"),
        (lambda: Factor((0,), [0.0]).expanded((0,), (2,)), ShapeError, r"has \(1,\)"),
        (lambda: product([Factor((0,), [0.0])], (0, 1)), InvalidArgumentError, "union of all scopes"),
        (lambda: product([Factor((0,), [0.0])], (1,)), InvalidArgumentError, "union of all scopes"),
        (lambda: Factor((0,), [-np.inf]).normalized(), ImpossibleError, "large negative score"),
        (
            lambda: Factor((0,), [0.0, 0.0]) / Factor((0,), [0.0, -np.inf]),
            InvalidArgumentError,
            "divide only by a marginal",
        ),
    ],
)
def test_bad_input_is_refused_with_the_remedy(make, error, remedy):
    with pytest.raises(error, match=remedy):
        make()
