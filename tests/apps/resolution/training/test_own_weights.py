"""Weights of one's own: levels that are given, and fields that count for more or less."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import EntityResolver, FieldSpec
from factorwise.apps.resolution.schema.fields import OwnLevels, fields_from, fields_to_toml, read_fields
from factorwise.errors import DataFileError, InvalidArgumentError
from record_cases import people

TABLE = pa.Table.from_pylist(people(200))
FAST = {"steps": 2, "passes": 1, "rounds": 4, "n_jobs": 1, "context": False}
TOML = """\
[fields.email]
kind = "email"
weight = 0.5
[[fields.email.levels]]
compare = "edits of local"
from = [0.5, 0.9]
weights = [-1.0, 3.0]
"""
EMAIL = FieldSpec(
    "email", "email", weight=0.5, levels=(OwnLevels("edits of local", (0.5, 0.9), (-1.0, 3.0)),)
)


def fitted(*fields, entity="person"):
    table = TABLE if entity else TABLE.drop_columns("person")
    return EntityResolver(fields=fields, **FAST).fit(table, entity, id="id")


def test_a_fields_file_says_weights_and_levels(tmp_path):
    path = tmp_path / "fields.toml"
    path.write_text(TOML, encoding="utf-8")
    (found,) = read_fields(path)
    assert (found, found.weight, found.levels) == (EMAIL, 0.5, EMAIL.levels)
    path.write_text(fields_to_toml([EMAIL]), encoding="utf-8")
    assert read_fields(path) == [EMAIL]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("weight = -1", "a number from 0 on"),
        ('weight = "much"', "weight"),
        ("weight = inf", "weight"),
        ("levels = [1]", "needs compare"),
        ('levels = [{compare = "a", from = 1, weights = [1]}]', "must be lists"),
        ('levels = [{compare = "a", from = [2, 1], weights = [1, 2]}]', "ascending"),
        ('levels = [{compare = "a", from = [1], weights = [1, 2]}]', "ascending"),
        ('levels = [{compare = "a", from = [1], weights = [nan]}]', "weights"),
    ],
)
def test_wrong_weights_in_a_file_are_refused(tmp_path, line, said):
    path = tmp_path / "fields.toml"
    path.write_text(f'[fields.email]\nkind = "email"\n{line}\n', encoding="utf-8")
    with pytest.raises(DataFileError, match=said):
        read_fields(path)


def test_levels_of_ones_own_stand_in_the_model_and_in_explanations(tmp_path):
    resolver = fitted(EMAIL)
    assert resolver.knowledge_.weights_by_comparison()["email: edits of local"] == [0.0, -1.0, 3.0]
    weighed = resolver.explain(TABLE, id="id").pair(0, 1).weighed
    assert any(one.weight in (-1.0, 3.0) for one in weighed if one.measure == "edits" and one.form == "local")
    resolver.save(tmp_path / "m.fw")
    loaded = EntityResolver.load(tmp_path / "m.fw", n_jobs=1, rounds=4)
    np.testing.assert_array_equal(
        loaded.resolve(TABLE, id="id").labels, resolver.resolve(TABLE, id="id").labels
    )


def test_a_field_counts_as_often_as_it_is_said():
    plain, half = fitted(), fitted(FieldSpec("email", "email", weight=0.5))
    weights, halved = (each.knowledge_.weights_by_comparison() for each in (plain, half))
    for name, values in weights.items():
        factor = 0.5 if name.startswith("email:") else 1.0
        np.testing.assert_allclose(np.multiply(factor, values), halved[name])
    none = fitted(FieldSpec("email", "email", weight=0.0)).knowledge_
    assert not any(name.startswith("email:") for name in none.weights_by_comparison())


def test_without_labels_weights_count_and_levels_are_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"levels of your own.*go with labels"):
        fitted(EMAIL, entity=None)
    resolver = fitted(FieldSpec("email", "email", weight=0.0), entity=None)
    steps = resolver.explain(TABLE, id="id").pair(0, 1).weighed
    assert [one.weight for one in steps if one.field == "email"] == [0.0]
    resolver.save(tmp_path / "m.fw")
    loaded = EntityResolver.load(tmp_path / "m.fw", n_jobs=1)
    again = loaded.explain(TABLE, id="id").pair(0, 1).weighed
    assert [one.weight for one in again if one.field == "email"] == [0.0]


def test_comparisons_that_a_field_does_not_have_are_refused_with_those_that_it_has():
    with pytest.raises(InvalidArgumentError, match="no comparison 'edits of moon'; it has 'rarity of email'"):
        fitted(FieldSpec("email", "email", levels=(OwnLevels("edits of moon", (0.0,), (1.0,)),)))
    assert fields_from({"fields": {"a": {"kind": "text"}}}) == [FieldSpec("a", "text")]
