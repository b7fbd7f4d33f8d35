"""Resolving with files: the same bits as in memory, nothing left behind, and sizes that can be read."""

import gc
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import EntityResolver, linked_items, linking, memory
from factorwise.apps.resolution.blocking import candidates, keys
from factorwise.apps.resolution.comparisons import derived, plan
from factorwise.apps.resolution.context import grouping
from factorwise.apps.resolution.memory import (
    MemoryPlan,
    expected_seconds,
    free_memory,
    parse_memory,
    plan_memory,
)
from factorwise.apps.resolution.normalize import normal_forms
from factorwise.apps.resolution.normalize.forms import Lists
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.apps.resolution.normalize.stored_forms import StoredForms
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.cli.resolve.apply import _handed_over
from factorwise.distributed import LocalExecutor
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards import component_search
from factorwise.io.columns import Columns
from resolution_cases import people_table

PEOPLE = people_table(60)


@pytest.fixture(scope="module")
def resolver():
    return EntityResolver(steps=10, rounds=6, n_jobs=1).fit(PEOPLE, "person", id="id")


@pytest.fixture
def small_stretches(monkeypatch):
    for module, name in (
        (candidates, "_STRETCH"),
        (component_search, "STRETCH"),
        (grouping, "STRETCH"),
        (linking, "PAIRS_AT_ONCE"),
        (linked_items, "ITEMS_AT_ONCE"),
        (plan, "CHUNK"),
        (derived, "STRETCH"),
        (keys, "_ROWS"),
        (normal_forms, "ROWS_OF_A_STRETCH"),
    ):
        monkeypatch.setattr(module, name, 37)


def test_all_kinds_of_normal_forms_are_kept_in_files(tmp_path):
    columns = Columns.in_scratch(str(tmp_path), at_once=1 << 16)
    forms = {
        "vectors": Vectors(np.array([0, -1, 1], np.int32), np.eye(2, 3, dtype=np.float32)),
        "no vectors": Vectors(np.array([-1], np.int32), np.zeros((0, 3), np.float32)),
        "scores": PairValues(4, np.array([0, 1]), np.array([2, 3]), np.array([0.5, -1.0], np.float32)),
        "no scores": PairValues(4, *np.zeros((2, 0), np.int64), np.zeros(0, np.float32)),
    }
    stored = StoredForms(columns)
    stored.update(forms)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) >= len(forms)
    for name, form in forms.items():
        found = stored[name]
        assert found is not form
        assert type(found) is type(form)
        for part in fields(form):
            one, other = getattr(found, part.name), getattr(form, part.name)
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype


def in_files(monkeypatch):
    """Let every plan say that nothing fits into memory."""
    monkeypatch.setattr(memory, "_PROGRAM", 1 << 60)
    monkeypatch.setattr(memory, "_PAIR_ON_DISK", 1)


def test_entities_and_confidences_are_the_same_bits(resolver, monkeypatch, tmp_path, small_stretches):
    expected = resolver.resolve(PEOPLE, id="id")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    in_files(monkeypatch)
    plans = []
    found = resolver.resolve(PEOPLE, id="id", memory="1GB", planned=plans.append)
    assert plans[0].disk > 0
    assert found.linked.normal.columns.in_files
    assert len(list(tmp_path.glob("*/*"))) > 20
    assert found.entity.equals(expected.entity)
    assert found.confidence.tobytes() == expected.confidence.tobytes()
    del found
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_records_that_go_to_a_file_are_not_kept_in_memory(resolver, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    in_files(monkeypatch)
    table = PEOPLE.take(pa.array(np.arange(PEOPLE.num_rows)))
    reader, size, held = _handed_over(table), table.nbytes, []
    del table
    before = pa.total_allocated_bytes()
    found = resolver.resolve(reader, id="id", linked=lambda linked: held.append(pa.total_allocated_bytes()))
    assert found.linked.normal.columns.in_files
    assert held[0] < before - 0.5 * size
    assert found.ids.equals(PEOPLE.column("id").combine_chunks())


def test_tables_lie_in_files_as_they_were_given(tmp_path):
    columns = Columns.in_scratch(str(tmp_path))
    colors = [pa.array(["red", None]).dictionary_encode(), pa.array(["blue"]).dictionary_encode()]
    table = pa.table({"n": [1, 2, 3], "color": pa.chunked_array(colors), "list": [["a"], [], None]})
    kept = columns.keep_table(table)
    columns.rest()
    assert kept.to_pylist() == table.to_pylist()
    assert kept.schema == table.schema
    assert Columns().keep_table(table) is table


def test_forms_come_back_from_files_as_they_were(resolver):
    fields = resolver.knowledge_.fields
    plain, stored = normalize(PEOPLE, fields), normalize(PEOPLE, fields, Columns.in_scratch())
    for field, forms in plain.items():
        assert list(stored[field]) == list(forms)
        for form, column in forms.items():
            again = stored[field][form]
            assert type(again) is type(column)
            assert again.to_arrow().equals(column.to_arrow())
            assert np.array_equal(again.missing, column.missing)


def test_dates_are_read_in_one_order_in_all_stretches(monkeypatch):
    """Only the last rows tell that months come first."""
    table = pa.table({"born": ["01/02/1990", "03/04/1991", "05/06/1992", "07/08/1993", "12/24/1994", None]})
    fields = [FieldSpec("born", "date")]
    whole = normalize(table, fields)["born"]["month"].to_list()
    monkeypatch.setattr(normal_forms, "ROWS_OF_A_STRETCH", 2)
    assert normalize(table, fields)["born"]["month"].to_list() == whole
    assert whole[:5] == [1.0, 3.0, 5.0, 7.0, 12.0]


@pytest.mark.parametrize("threads", [None, 2])
def test_forms_of_stretches_are_those_of_the_whole(resolver, monkeypatch, threads):
    fields = resolver.knowledge_.fields
    whole = normalize(PEOPLE, fields)
    monkeypatch.setattr(normal_forms, "ROWS_OF_A_STRETCH", 17)
    executor = None if threads is None else LocalExecutor(threads)
    parts = normalize(PEOPLE, fields, executor=executor)
    for field, forms in whole.items():
        for name, form in forms.items():
            other = parts[field][name]
            assert [set(row) if isinstance(row, list) else row for row in other.to_list()] == [
                set(row) if isinstance(row, list) else row for row in form.to_list()
            ]
            if isinstance(form, Lists):
                same_row = np.diff(np.repeat(np.arange(len(other)), np.diff(other.offsets))) == 0
                assert (np.diff(other.codes)[same_row] > 0).all()
            if hasattr(form, "frequencies"):
                assert len(set(other.values.to_pylist())) == len(other.values)
                assert np.array_equal(np.sort(other.frequencies().counts), np.sort(form.frequencies().counts))


def test_what_does_not_fit_on_the_disk_is_told_before_the_work(tmp_path):
    wanted = MemoryPlan(10**9, 10**18, 10**18)
    with pytest.raises(InvalidArgumentError, match=r"set TMPDIR .* or allow about"):
        wanted.open_columns(tmp_path)


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("1.5 GiB", 3 << 29), ("800mb", 8 * 10**8), (10**9, 10**9)]
)
def test_sizes_are_read_with_their_units(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["much", "4 apples", "-1GB", "1MB", ""])
def test_other_sizes_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="memory must be"):
        parse_memory(text)


def test_half_of_the_free_memory_is_the_limit_unless_one_is_given():
    plan_of = plan_memory(None, 10**6, 10**6)
    assert abs(plan_of.limit - free_memory() / 2) < 0.2 * plan_of.limit
    assert plan_of.disk == 0
    assert plan_memory("300MB", 10**6, 10**8).disk > 0


def test_expected_costs_are_those_that_were_measured_within_a_factor_of_two():
    # a million generated author mentions, in context, and a million Febrl-like records
    assert 0.5 < expected_seconds(10**6, 9_500_000, context=True) / 55 < 2
    assert 0.5 < expected_seconds(10**6, 1_260_000) / 13 < 2
    assert 0.5 < plan_memory("20GB", 173_000_000, 12_000_000, context=True).needed / 1.54e9 < 2
