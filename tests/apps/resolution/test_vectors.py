"""Columns of vectors: read, refused, compared, and resolved with and without labels."""

import json

import numpy as np
import pyarrow as pa
import pytest

import factorwise as fw
from factorwise.apps.resolution.normalize.vector_forms import read_vectors
from factorwise.apps.resolution.schema.fields import FieldSpec, read_fields
from factorwise.apps.resolution.schema.kinds import infer_kind
from factorwise.errors import InvalidArgumentError
from factorwise.metrics.clustering import b_cubed

ROWS = [[3.0, 4.0], None, [0.0, 0.0], [6.0, 8.0], [-4.0, 3.0]]


def column(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    "values",
    [
        column(ROWS, pa.list_(pa.float64())),
        column(ROWS, pa.large_list(pa.float32())),
        column(ROWS, pa.list_(pa.float32(), 2)),
        column([[3, 4], None, [0, 0], [6, 8], [-4, 3]], pa.list_(pa.int8(), 2)),
        column([None if row is None else json.dumps(row) for row in ROWS]),
        column(["[3,4]", "", " [0e0, .0] ", "[ 6.0 , 8.0 ]", "[-4, 3]"]),
    ],
    ids=["list", "large list", "fixed size", "small whole numbers", "JSON", "other JSON"],
)
def test_vectors_are_read_from_lists_and_texts(values):
    found = read_vectors(values, "embedding")
    np.testing.assert_array_equal(found.codes, [0, -1, -1, 0, 1])  # zeros are missing, directions count
    np.testing.assert_allclose(found.values, [[0.6, 0.8], [-0.8, 0.6]], atol=1e-7)


def test_stretches_of_texts_and_huge_numbers():
    texts = column([json.dumps([float(k), 1e300]) for k in range(20_000)])
    found = read_vectors(texts, "embedding")
    np.testing.assert_allclose(np.linalg.norm(found.values, axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (column([[1.0, 2.0], None, [1.0]]), "a vector of 1 numbers in record 3.*have 2"),
        (column([[1.0, 2.0], [np.nan, 1.0]]), "not finite in the vector of record 2"),
        (column([[1.0, 2.0], [np.inf, 1.0]]), "not finite in the vector of record 2"),
        (column([None, [1.0, None]]), "missing number in record 2"),
        (column(["[1.0, 2.0]", "red, green"]), "lists of numbers such as"),
        (column(["[1.0, 2.0]", "[1.0, nan]"]), "not finite in the vector of record 2"),
        (column(["[1.0, 2.0]", "[1.0]"]), "a vector of 1 numbers in record 2"),
        (column([["a"], ["b"]]), "which vectors cannot be made of"),
    ],
)
def test_bad_vectors_are_refused(values, said):
    with pytest.raises(InvalidArgumentError, match=said):
        read_vectors(values, "embedding")


def test_vectors_of_another_length_are_refused():
    with pytest.raises(InvalidArgumentError, match="2 numbers, where 3 are expected"):
        read_vectors(column([[1.0, 2.0]]), "embedding", 3)


def test_rows_and_cosines():
    found = read_vectors(column(ROWS, pa.list_(pa.float64())), "embedding")
    cosines = found.cosines(np.array([0, 0, 0, 3]), np.array([3, 4, 1, 4]))
    np.testing.assert_allclose(cosines, [1.0, 0.0, np.nan, 0.0], atol=1e-7)
    chosen = found.rows(np.array([4, -1, 0]))
    np.testing.assert_array_equal(chosen.codes, [1, -1, 0])
    assert chosen.to_list()[1] is None
    np.testing.assert_allclose(chosen.to_list()[0], [-0.8, 0.6], atol=1e-7)


@pytest.mark.parametrize(
    ("values", "kind", "options"),
    [
        (column([[1.0, 2.0], [0.5, 1.0]]), "vector", {"length": "2"}),
        (column([[1, 2], [0, 1]], pa.list_(pa.int16(), 2)), "vector", {"length": "2"}),
        (column([[1.0, 2.0], [0.5]]), "list", {"items": "text"}),
        (column([[1999, 2000], [2001, 2002]]), "list", {"items": "text"}),
        (
            column([json.dumps((np.arange(12) / 7 - k).tolist()) for k in range(30)]),
            "vector",
            {"length": "12"},
        ),
        (column(["[1, 2, 3]", "[4, 5, 6]"] * 20), None, None),
    ],
)
def test_vectors_are_recognised(values, kind, options):
    found = infer_kind("embedding", values)
    if kind is None:
        assert found.kind != "vector"
    else:
        assert (found.kind, dict(found.options)) == (kind, options)


def test_the_length_in_a_fields_file(tmp_path):
    path = tmp_path / "fields.toml"
    path.write_text('[fields.embedding]\nkind = "vector"\nlength = 384\n', encoding="utf-8")
    assert read_fields(path) == [FieldSpec("embedding", "vector", {"length": "384"})]
    with pytest.raises(InvalidArgumentError, match="how many numbers a vector has"):
        FieldSpec("embedding", "vector", {"length": "many"})


WORDS = "amber birch cedar delta ember fjord grove haven inlet jetty knoll larch maple".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def records():
    """Records whose titles are often other words, and whose vectors are near the entity's."""
    draws = np.random.default_rng(3)
    entity = np.repeat(np.arange(120), draws.integers(1, 4, 120))
    titles = [" ".join(draws.choice(WORDS, 3)) for _ in range(120)]
    vectors = draws.normal(size=(120, 16))[entity] + 0.4 * draws.normal(size=(len(entity), 16))
    title = [titles[k] if draws.random() < 0.6 else " ".join(draws.choice(WORDS, 3)) for k in entity]
    embedding = pa.FixedSizeListArray.from_arrays(vectors.astype(np.float32).ravel(), 16)
    table = pa.table({"title": title, "year": 1990 + entity % 9, "embedding": embedding})
    return table, entity


@pytest.fixture(scope="module")
def fitted(records):
    table, entity = records
    known = pa.array([int(number) if number % 2 else None for number in entity])
    return fw.EntityResolver(n_jobs=1).fit(table, known)


def test_vectors_find_entities_that_words_do_not(records, fitted, tmp_path):
    table, entity = records
    other = entity % 2 == 0
    labels = fitted.resolve(table).labels
    assert b_cubed(entity[other], labels[other]).f1 > 0.95
    plain = table.drop_columns("embedding")
    known = pa.array([int(number) if number % 2 else None for number in entity])
    without = fw.EntityResolver(n_jobs=1).fit(plain, known).resolve(plain).labels
    assert b_cubed(entity[other], without[other]).f1 < 0.85
    fitted.save(tmp_path / "model.fw")
    loaded = fw.EntityResolver.load(tmp_path / "model.fw", n_jobs=1)
    np.testing.assert_array_equal(loaded.resolve(table).labels, labels)


def test_explanations_name_the_vectors_and_their_neighbors(records, fitted):
    table, entity = records
    first = int(np.flatnonzero(entity[1:] == entity[:-1])[0])
    pair = fitted.explain(table).pair(first, first + 1)
    assert any((one.field, one.measure) == ("embedding", "cosine") for one in pair.weighed)
    assert "nearest 10 of embedding" in pair.rules


def test_a_model_refuses_vectors_of_another_length(records, fitted):
    table, _ = records
    shorter = pa.array([row[:8] for row in table.column("embedding").to_pylist()], pa.list_(pa.float32()))
    with pytest.raises(InvalidArgumentError, match="8 numbers, where 16 are expected"):
        fitted.resolve(table.set_column(2, "embedding", shorter))


def test_vectors_help_without_labels_and_stay_in_the_model_file(records, tmp_path):
    table, entity = records
    draws = np.random.default_rng(4)
    own = {number: " ".join(draws.choice(WORDS, 3, replace=False)) + f" {number}" for number in range(120)}
    some = [own[number] if draws.random() < 0.6 else None for number in entity.tolist()]
    table = table.set_column(0, "title", pa.array(some, pa.string()))
    resolver = fw.EntityResolver(n_jobs=1).fit(table)
    labels = resolver.resolve(table).labels
    plain = table.drop_columns("embedding")
    without = fw.EntityResolver(n_jobs=1).fit(plain).resolve(plain).labels
    assert b_cubed(entity, labels).f1 > b_cubed(entity, without).f1 + 0.05
    resolver.save(tmp_path / "model.fw")
    loaded = fw.EntityResolver.load(tmp_path / "model.fw", n_jobs=1)
    half = table.slice(0, 100)  # on which levels of its own would begin elsewhere
    np.testing.assert_array_equal(loaded.resolve(half).labels, resolver.resolve(half).labels)
    assert loaded.knowledge_.unlabelled.evidence.columns[-1].edges


def test_nothing_but_vectors_needs_labels(records):
    table, _ = records
    with pytest.raises(InvalidArgumentError, match="none that can be read"):
        fw.EntityResolver(n_jobs=1).fit(table.select(["embedding"]))
