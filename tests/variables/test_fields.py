"""Fields of items: what columns may hold, and how records and clusters look."""

import numpy as np
import pytest

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.variables.fields import Fields

FIELDS = Fields(
    last=np.array([3, 3, 5], np.int64),
    known=[True, False, True],
    year=[0.5, 1.25, -2.0],
    coauthors=[[1, 2], [2, 4], [0, 0]],
)


def test_whole_numbers_are_kept_in_32_bits_and_reals_in_single_precision():
    dtypes = {name: field.values.dtype for name, field in FIELDS.columns.items()}
    assert dtypes == {"last": np.int32, "known": np.int32, "year": np.float32, "coauthors": np.int32}
    assert [field.width for field in FIELDS.columns.values()] == [0, 0, 0, 2]
    assert FIELDS.n_items == 3


def test_a_record_holds_plain_numbers_and_rows_as_tuples():
    record = FIELDS.record(1)
    assert record == (3, 0, 1.25, (2, 4))
    assert record._fields == ("last", "known", "year", "coauthors")
    assert [type(value) for value in record] == [int, int, float, tuple]
    assert FIELDS.records([2, 1]) == [FIELDS.record(2), record]
    assert FIELDS.records([]) == []


def test_a_cluster_holds_arrays_with_members_in_rows_its_size_and_type():
    cluster = FIELDS.cluster([2, 0], 1)
    assert cluster.last.tolist() == [5, 3]
    assert cluster.coauthors.tolist() == [[0, 0], [1, 2]]
    assert (cluster.size, cluster.type) == (2, 1)


def test_the_extremes_of_32_bits_fit():
    extremes = Fields(code=[1 - 2**31, 2**31 - 1])  # the one below is kept for "no value at all"
    assert extremes["code"].values.tolist() == [1 - 2**31, 2**31 - 1]


BAD = {
    "no columns": ({}, InvalidArgumentError, r"give Fields\(name=values"),
    "no items": ({"a": np.zeros(0, int)}, EmptyWorldError, "at least one item"),
    "two lengths": ({"a": [1], "b": [1, 2]}, ShapeError, "lengths differ: {'a': 1, 'b': 2}"),
    "three dimensions": ({"a": np.zeros((1, 1, 1))}, ShapeError, r"shape \(items,\) or \(items, width\)"),
    "one number": ({"a": 3}, ShapeError, "must have shape"),
    "more than 32 bits": ({"a": [2**31]}, InvalidArgumentError, "encode them as codes of a domain"),
    "less than 32 bits": ({"a": [-(2**31) - 1]}, InvalidArgumentError, "beyond 32 bits"),
    "a missing number": (
        {"a": [[1.0, np.nan]]},
        InvalidArgumentError,
        r"nan at \(0, 1\): fill in missing numbers and add a field that marks them",
    ),
    "an infinite number": ({"a": [np.inf]}, InvalidArgumentError, r"inf at \(0,\)"),
    "strings": ({"a": ["x"]}, InvalidArgumentError, "encode labels with a Domain"),
    "a name that clusters have": ({"size": [1]}, InvalidArgumentError, "other than 'size' and 'type'"),
    "a private name": ({"_a": [1]}, InvalidArgumentError, "without a leading underscore"),
    "a name that is none": ({"a b": [1]}, InvalidArgumentError, "use a Python identifier"),
    "a keyword": ({"class": [1]}, InvalidArgumentError, "use a Python identifier"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_columns_are_refused_with_a_remedy(name):
    columns, error, message = BAD[name]
    with pytest.raises(error, match=message):
        Fields(**columns)


def test_a_field_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(InvalidArgumentError, match=r"no field is called 'first': the fields are .*'last'"):
        FIELDS["first"]
