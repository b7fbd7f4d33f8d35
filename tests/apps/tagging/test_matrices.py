"""Matrices of attributes."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from factorwise.apps.tagging.features.matrices import MatrixEncoder
from factorwise.errors import InvalidArgumentError, ModelFileError, ShapeError

cells = st.sampled_from([0.0, 0.0, 1.0, -2.5])
sentences = st.lists(
    st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=4), min_size=1, max_size=4
)
FORMS = {
    "lists": lambda rows: rows,
    "array": np.array,
    "csr": lambda rows: scipy.sparse.csr_array(np.array(rows)),
    "csc": lambda rows: scipy.sparse.csc_matrix(np.array(rows)),
    "coo": lambda rows: scipy.sparse.coo_array(np.array(rows)),
}


@pytest.mark.parametrize("form", FORMS)
@given(sentences)
def test_the_rows_are_the_matrices_one_below_the_other(form, data):
    encoder = MatrixEncoder()
    stacked = [row for sentence in data for row in sentence]
    rows, start = encoder.fit_encode([FORMS[form](sentence) for sentence in data])
    assert rows.to_dense().tolist() == stacked
    assert rows.n_entries == np.count_nonzero(stacked)
    assert start.tolist() == np.cumsum([0, *map(len, data)]).tolist()
    whole, again = encoder.encode(FORMS[form](stacked), lengths=[len(sentence) for sentence in data])
    assert whole.to_dense().tolist() == stacked
    assert again.tolist() == start.tolist()


def test_zeros_that_a_sparse_matrix_stores_are_left_out_and_repeated_entries_add_up():
    matrix = scipy.sparse.csr_array(
        (np.array([0.0, 2.0, 3.0, 0.0]), np.array([0, 1, 1, 2]), np.array([0, 3, 4])), shape=(2, 3)
    )
    rows, _ = MatrixEncoder().fit_encode([matrix])
    assert rows.to_dense().tolist() == [[0, 5, 0], [0, 0, 0]]
    assert rows.indptr.tolist() == [0, 2, 2]


def test_ones_need_no_values():
    assert MatrixEncoder().fit_encode([np.eye(3, dtype=bool)]).rows.values is None


def test_columns_have_names_and_are_templates_of_their_own():
    encoder = MatrixEncoder()
    encoder.fit_encode([np.zeros((1, 3))])
    assert list(encoder.names()) == ["feature 0", "feature 1", "feature 2"]
    assert encoder.slots().tolist() == [0, 1, 2]
    assert list(MatrixEncoder(["a", "b"]).names()) == ["a", "b"]


@pytest.mark.parametrize("names", [None, ["a", "é\0", ""]])
def test_a_restored_encoder_does_the_same(names):
    encoder = MatrixEncoder(names)
    encoder.fit_encode([np.eye(3)])
    restored = MatrixEncoder.from_arrays(*encoder.to_arrays())
    assert list(restored.names()) == list(encoder.names())
    assert restored.encode([2 * np.eye(3)]).rows.to_dense().tolist() == (2 * np.eye(3)).tolist()
    with pytest.raises(ShapeError, match="sentence 0 has 2 columns"):
        restored.encode([np.eye(2)])


@pytest.mark.parametrize(
    ("matrices", "lengths", "error", "message"),
    [
        ([np.eye(2), np.zeros((1, 3))], None, ShapeError, "sentence 1 has 3 columns, but there are 2"),
        ([np.eye(2), np.zeros((0, 2))], None, ShapeError, "sentence 1 has no tokens"),
        (np.eye(2), None, InvalidArgumentError, "say with lengths how many tokens each sentence has"),
        (scipy.sparse.eye_array(2), None, InvalidArgumentError, "or give a list of matrices"),
        (np.eye(2), [1], ShapeError, "lengths must be the numbers of tokens of the sentences, 2 in all"),
        (np.eye(2), [3, -1], ShapeError, "[3, -1] was given"),
        (np.eye(2), [2.0], ShapeError, "[2.0] was given"),
        (np.eye(2), [0, 2], ShapeError, "sentence 0 has no tokens"),
        ([[1, 2]], None, ShapeError, "sentence 0 has shape (2,)"),
        ([[["a", "b"]]], None, ShapeError, "shape (1, 2) and dtype <U1: give a matrix of numbers"),
        ([[[1, 2], [3]]], None, ShapeError, "sentence 0 has rows of different lengths"),
        ([], None, InvalidArgumentError, "give at least one"),
        (
            [np.eye(2), np.array([[0.0, 1.0], [np.nan, 0.0]])],
            None,
            InvalidArgumentError,
            "token 1 of sentence 1 has nan for 'feature 0'",
        ),
        ([np.array([[0.0, -np.inf]])], None, InvalidArgumentError, "token 0 of sentence 0 has -inf"),
        ([np.array([[0.0, 1e39]])], None, InvalidArgumentError, "has 1e+39 for 'feature 1'"),
        ([scipy.sparse.csr_array([[1j]])], None, ShapeError, "give a matrix of numbers"),
    ],
)  # fmt: skip
def test_matrices_that_do_not_fit_are_refused(matrices, lengths, error, message):
    with pytest.raises(error) as refused:
        MatrixEncoder().fit_encode(matrices, lengths)
    assert message in str(refused.value)


def test_names_fit_the_columns_or_are_refused():
    with pytest.raises(ShapeError, match="sentence 0 has 2 columns, but there are 1 names"):
        MatrixEncoder(["a"]).fit_encode([np.eye(2)])
    with pytest.raises(InvalidArgumentError, match="two columns are named 'a'"):
        MatrixEncoder(["a", "b", "a"])
    arrays, metadata = MatrixEncoder(["a", "b"]).to_arrays()
    with pytest.raises(ModelFileError, match="has 2 names for 3 columns"):
        MatrixEncoder.from_arrays(arrays, metadata | {"width": 3})
