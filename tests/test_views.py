"""Views in HTML and exports: escaped, short, and the same numbers in pandas and xarray."""

import sys

import numpy as np
import pytest

import factorwise as fw
from factorwise.errors import MissingExtraError, ShapeError
from factorwise.inference.exports import marginals_frame
from factorwise.views import MOST_ROWS, html_table

GRAPH = fw.FactorGraph.build([2, 3], [((0, 1), np.log([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))])


def test_what_users_gave_is_escaped_and_long_tables_are_cut():
    text = html_table("<script>", ["<b>"], [["<img>", 0.123456789]] * (MOST_ROWS + 3))
    assert "<script>" not in text
    assert "<img>" not in text
    assert text.count("&lt;img&gt;") == MOST_ROWS
    assert "0.123457" in text
    assert "and 3 more" in text


def test_a_network_shows_names_that_are_text_not_markup():
    text = "variable <i> { type discrete [ 2 ] { <u>, b }; } probability ( <i> ) { table 0.5, 0.5; }"
    network = fw.networks.parse_network(text.encode(), syntax="bif")
    view = network._repr_html_()
    assert "&lt;i&gt;" in view
    assert "<u>" not in view


def test_a_partition_shows_its_largest_clusters():
    view = fw.Partition.from_labels([0, 1, 1, 1, 2])._repr_html_()
    assert "5 items in 3 clusters" in view
    assert view.index("1, 2, 3") < view.index("<td>0</td>")


def test_an_answer_becomes_a_table_and_a_labeled_array():
    answer = fw.infer(GRAPH)
    frame = answer.to_pandas(["x", "y"], [["a", "b"], ["a", "c", "d"]])
    assert frame["variable"].tolist() == ["x", "x", "y", "y", "y"]
    assert frame["label"].tolist() == ["a", "b", "a", "c", "d"]
    np.testing.assert_allclose(frame["probability"], np.array([6, 15, 5, 7, 9]) / 21)
    array = answer.to_xarray(["x", "y"], [["a", "b"], ["a", "c", "d"]])
    assert array.sel(variable="y", label="d") == pytest.approx(9 / 21)
    assert np.isnan(array.sel(variable="x", label="d"))
    best = fw.infer(GRAPH, query="best").to_pandas(["x", "y"], [["a", "b"], ["a", "c", "d"]])
    assert best["probability"].tolist() == [0, 1, 0, 0, 1]
    with pytest.raises(ShapeError, match="give a name for each variable"):
        answer.to_pandas(["x"])


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'factorwise\[diagnostics\]'"):
        marginals_frame([np.ones(1)])
