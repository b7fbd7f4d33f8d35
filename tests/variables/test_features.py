import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from factorwise.errors import InvalidArgumentError, ShapeError, UnknownLabelError
from factorwise.variables.domain import Domain
from factorwise.variables.features import Features

rows = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.integers(-3, 3).map(float), max_size=4), max_size=6
)


@given(rows)
def test_rows_of_dictionaries_come_back(given):
    features = Features.from_rows(given)
    assert [features.row(row) for row in range(len(features))] == given


def test_names_in_a_list_count_once_each_time():
    features = Features.from_rows([["a", "b", "a"], [], ["b"]])
    assert [features.row(row) for row in range(3)] == [{"a": 2.0, "b": 1.0}, {}, {"b": 1.0}]


def test_a_frozen_vocabulary_drops_or_refuses_what_it_does_not_know():
    vocabulary = Domain.growing("words")
    Features.from_rows([["a", "b"]], vocabulary)
    frozen = vocabulary.freeze()
    later = Features.from_rows([["b", "z"]], frozen)
    assert later.width == 2
    assert later.row(0) == {"b": 1.0}
    with pytest.raises(UnknownLabelError, match="'z' is not among the 2 labels of domain 'words'"):
        Features.from_rows([["b", "z"]], frozen, unknown="error")


def test_dense_sparse_and_named_forms_agree():
    dense = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -1.0]])
    first = Features.from_dense(dense, names=["x", "y", "z"])
    second = Features.from_csr(csr_array(dense), names=["x", "y", "z"])
    for left, right in zip(
        (first.indptr, first.indices, first.data), (second.indptr, second.indices, second.data), strict=True
    ):
        np.testing.assert_array_equal(left, right)
    weights = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(first.times(weights), dense @ weights)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: Features.from_dense([[0.0, 1.0], [np.nan, 0.0]], names=["x", "length"]),
            InvalidArgumentError,
            "'x' of row 1 is nan",
        ),
        (
            lambda: Features.from_rows([{}, {"size": np.inf}]),
            InvalidArgumentError,
            "'size' of row 1 is inf: features are finite",
        ),
        (lambda: Features.from_dense(np.zeros(3)), ShapeError, "rows x columns"),
        (lambda: Features.from_dense(np.zeros((2, 3)), names=["x"]), ShapeError, "1 names were given for 3"),
        (
            lambda: Features.from_rows([["a", "b"]]).times(np.zeros((3, 2))),
            ShapeError,
            "2 columns, but the weights have 3 rows",
        ),
        (
            lambda: Features(Domain("f", ["a"]), np.array([0, 1]), np.array([1]), np.ones(1)),
            ShapeError,
            "one name per column",
        ),
        (
            lambda: Features(Domain("f", ["a"]), np.array([0, 2]), np.array([0]), np.ones(1)),
            ShapeError,
            "must begin with 0, never fall, and end",
        ),
    ],
)
def test_bad_features_are_refused_with_a_remedy(build, error, message):
    with pytest.raises(error, match=message):
        build()
