"""Model files of resolvers: what goes in comes out, and what does not fit together is refused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from factorwise.apps.resolution.blocking.filters import FilterReport, PairFilter
from factorwise.apps.resolution.knowledge import KIND, Knowledge
from factorwise.errors import ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model
from resolution_cases import known_of, people_table

KNOWN = known_of(people_table(20))


def test_what_was_saved_is_loaded(tmp_path):
    (tmp_path / "data.csv").write_text("a\n1\n")
    parts = KNOWN.fields, KNOWN.rules, KNOWN.comparisons, KNOWN.weights
    saved = Knowledge(*parts, temperature=0.3, thrifty=True, training={"method": "x", "b": 0.5})
    saved.save(tmp_path / "m.fw", seed=7, data=[tmp_path / "data.csv"])
    found = Knowledge.load(tmp_path / "m.fw")
    assert (found.fields, found.rules, found.comparisons) == (KNOWN.fields, KNOWN.rules, KNOWN.comparisons)
    assert found.weights.values.tolist() == KNOWN.weights.values.tolist()
    assert (found.weights.sizes, found.temperature) == (KNOWN.weights.sizes, 0.3)
    assert (found.thrifty, found.training) == (True, {"method": "x", "b": 0.5})
    record = read_model(tmp_path / "m.fw", KIND).provenance
    assert (record["seed"], record["data"][0]["name"]) == (7, "data.csv")


def test_a_filter_of_pairs_is_kept_in_the_file(tmp_path):
    learned = PairFilter((("born", "date"),), (), ((-3, -8, 9),), (), (2, 5), FilterReport(40, 9, 8, 1))
    replace(KNOWN, pair_filter=replace(learned, offset=1.5)).save(tmp_path / "m.fw")
    assert Knowledge.load(tmp_path / "m.fw").pair_filter == learned


def test_links_count_for_less_in_tables_that_are_larger_than_what_was_learned_from():
    learned = PairFilter((("born", "date"),), (), ((-3, -8, 9),), (), (2, 5), FilterReport(40, 9, 8, 1))
    known = replace(KNOWN, training={"records": 20}, pair_filter=learned)
    larger = known.for_size(200)
    assert larger.weights.link == pytest.approx(known.weights.link - np.log(10))
    assert larger.pair_filter.offset == pytest.approx(np.log(10))
    values = known.weights.values.copy()
    values[2] = larger.weights.link
    assert larger.weights.values.tolist() == values.tolist()
    assert known.for_size(20) is known.for_size(3) is known
    assert KNOWN.for_size(10**6) is KNOWN  # nobody knows what it was learned from


@pytest.mark.parametrize(("share", "scale"), [(0.9, 1.0), (0.8, 1.0), (0.6, 1 / 3), (0.4, 0.0), (0.0, 0.0)])
def test_not_being_linked_says_less_where_fewer_pairs_of_an_entity_are_linked(share, scale):
    values = KNOWN.weights.values.copy()
    values[0] = -0.5
    known = replace(
        KNOWN,
        weights=replace(KNOWN.weights, values=values),
        training={"linked_share": 0.8, "joined_share": 0.7},
    )
    applied = known.with_linked_share(share)
    assert applied.weights.unlinked == pytest.approx(-0.5 * scale)
    assert applied.weights.values[1:].tolist() == values[1:].tolist()
    assert known.loses_links(SimpleNamespace(joined_share=0.6))
    assert not known.loses_links(SimpleNamespace(joined_share=0.7))
    earlier = replace(known, training={})
    assert not earlier.loses_links(SimpleNamespace(joined_share=0.1))


def test_every_weight_has_a_name_of_its_own():
    names = KNOWN.weight_names()
    assert len(names) == len(set(names)) == len(KNOWN.weights.values)
    assert names[:3] == ["two members not linked", "a cluster", "two members linked"]
    assert "first_name: given names of first, one is an initial of the other" in names


def test_weights_are_named_in_their_order():
    names, tables = KNOWN.weight_names()[3:], KNOWN.weights.tables()
    place = 0
    for one, table in zip(KNOWN.comparisons, tables, strict=True):
        for level in range(1, one.cuts.size + 1):
            assert names[place] == f"{one.name}, {one.level_text(level)}"
            assert KNOWN.weights.values[3 + place] == table[level]
            place += 1
    assert place == len(names)


def _without_last_weight(content, arrays):
    arrays["weights"] = arrays["weights"][:-1]


def _without_rules(content, arrays):
    del content["rules"]


def _with_another_kind(content, arrays):
    content["fields"][0]["kind"] = "smell"


def _without_weights(content, arrays):
    del arrays["weights"]


@pytest.mark.parametrize(
    "spoil",
    [_without_last_weight, _without_rules, _with_another_kind, _without_weights],
    ids=lambda f: f.__name__,
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, spoil):
    KNOWN.save(tmp_path / "m.fw")
    file = read_model(tmp_path / "m.fw", KIND)
    content, arrays = dict(file.metadata), dict(file.arrays)
    spoil(content, arrays)
    write_model(tmp_path / "m.fw", ModelFile(kind=KIND, metadata=content, arrays=arrays))
    with pytest.raises(ModelFileError, match=r"do not fit together.*restore it from a copy, or train again"):
        Knowledge.load(tmp_path / "m.fw")


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_model(tmp_path / "m.fw", ModelFile(kind="weights", arrays={"weights": np.zeros(3)}))
    with pytest.raises(ModelFileError, match="weights"):
        Knowledge.load(tmp_path / "m.fw")
