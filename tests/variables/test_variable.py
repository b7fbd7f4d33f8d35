import numpy as np
import pytest

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError, UnknownLabelError
from factorwise.variables.domain import Domain
from factorwise.variables.variable import Column, Variables

TAG = Domain("tag", ["N", "V", "O"])
BIT = Domain("bit", ["off", "on"])


def three_columns():
    return Variables(
        [
            Column.of("tag", TAG, ["N", "V", "O"], observed=[False, True, False]),
            Column.hidden("bit", BIT, 2),
            Column.hidden("other tag", TAG, 2),
        ]
    )


def test_columns_and_rows_map_to_flat_numbers_and_back():
    variables = three_columns()
    places = [(c.name, row) for c in variables.columns for row in range(len(c))]
    numbers = [variables.number(*place) for place in places]
    assert numbers == list(range(len(variables)))
    assert [variables.locate(number) for number in numbers] == places


def test_flat_arrays_follow_the_columns():
    variables = three_columns()
    assert variables.cardinality.tolist() == [3, 3, 3, 2, 2, 3, 3]
    assert variables.codes.tolist() == [-1, 1, -1, -1, -1, -1, -1]
    assert variables.hidden.tolist() == [0, 2, 3, 4, 5, 6]
    assert variables.domain_of(4) == BIT
    assert variables.slice_of("bit") == slice(3, 5)


def test_pools_join_hidden_variables_of_one_domain_across_columns():
    assert [pool.tolist() for pool in three_columns().pools] == [[0, 2, 5, 6], [3, 4]]


def test_a_variable_with_one_label_is_hidden_but_not_movable():
    variables = Variables([Column.hidden("only", Domain("only", ["x"]), 2), Column.hidden("bit", BIT, 1)])
    assert variables.hidden.tolist() == [0, 1, 2]
    assert variables.movable.tolist() == [2]
    assert variables.pools == ()


BAD = {
    "no columns": (lambda: Variables([]), EmptyWorldError, "at least one column"),
    "no rows": (lambda: Variables([Column.hidden("t", TAG, 0)]), EmptyWorldError, "at least one row"),
    "a name twice": (
        lambda: Variables([Column.hidden("t", TAG, 1), Column.hidden("t", BIT, 1)]),
        InvalidArgumentError,
        "two columns are called 't'",
    ),
    "an unknown column": (lambda: three_columns().number("x", 0), InvalidArgumentError, "the columns are"),
    "an unknown row": (lambda: three_columns().number("bit", 2), InvalidArgumentError, "rows are 0 to 1"),
    "an unknown number": (lambda: three_columns().locate(7), InvalidArgumentError, "numbered 0 to 6"),
    "an unknown label": (lambda: Column.of("t", TAG, ["X"]), UnknownLabelError, "domain.extended"),
    "a code outside": (lambda: Column("t", TAG, np.array([3])), InvalidArgumentError, "use -1 for a hidden"),
    "a mask of another length": (
        lambda: Column.of("t", TAG, ["N"], observed=[True, False]),
        ShapeError,
        "one entry per row",
    ),
    "codes in two dimensions": (
        lambda: Column("t", TAG, np.zeros((2, 2), int)),
        ShapeError,
        "one code per row",
    ),
    "an empty domain": (
        lambda: Column.hidden("t", Domain("t", []), 1),
        InvalidArgumentError,
        "give it labels",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_variables_are_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()
