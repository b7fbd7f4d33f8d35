"""Bags of keys: made of fields, lists and weights."""

import numpy as np
import pytest

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.variables.bags import UNIT, Bags
from factorwise.variables.fields import Fields

FIELDS = Fields(
    name=[3, -1, 3, 0], words=[[1, 1, 2], [-1, 2, 0], [5, 5, 5], [-1, -1, -1]], year=[0.5, 1.0, 2.0, 3.0]
)


def test_a_plain_field_gives_one_key_each_or_none():
    bags = Bags.from_field(FIELDS, "name")
    assert [bags.of(item) for item in range(4)] == [{1: 1}, {}, {1: 1}, {0: 1}]
    assert bags.n_keys == 2
    missing = Bags.from_field(FIELDS, "name", missing=0)
    assert [missing.of(item) for item in range(4)] == [{0: 1}, {}, {0: 1}, {}]


def test_a_field_of_rows_gives_every_different_number_once():
    bags = Bags.from_field(FIELDS, "words", missing=0)
    assert [bags.of(item) for item in range(4)] == [{0: 1, 1: 1}, {1: 1}, {2: 1}, {}]


def test_lists_count_how_often_a_key_stands_there():
    bags = Bags.from_lists([["a", "b", "a"], [], ["b", ("c", 1)]])
    assert [bags.of(item) for item in range(3)] == [{0: 2, 1: 1}, {}, {1: 1, 2: 1}]
    assert [bags.present().of(item) for item in range(3)] == [{0: 1, 1: 1}, {}, {1: 1, 2: 1}]


def test_scaled_bags_have_one_length():
    bags = Bags.from_lists([["a", "b", "a"], [], ["b"] * 7, list("abcdefg"), []])
    for item, scaled in enumerate(bags.scaled().of(item) for item in range(5)):
        given = bags.of(item)
        assert scaled.keys() == given.keys()
        length = sum(amount**2 for amount in given.values()) ** 0.5
        assert scaled == {key: round(UNIT * amount / length) for key, amount in given.items()}


def test_what_scales_to_nothing_is_left_out():
    bags = Bags([0, 2, 3], [0, 1, 1], [1, 60_000, 2])
    assert [bags.scaled().of(item) for item in range(2)] == [{0: UNIT}, {0: UNIT}]  # keys are numbered anew


def test_weights_are_scaled_to_whole_numbers():
    bags = Bags.from_weights([{"a": 3.0, "b": 4.0}, {}, {"b": 0.1, "c": 0.0}, {"a": 0.0}])
    assert bags.of(0) == {0: round(0.6 * UNIT), 1: round(0.8 * UNIT)}
    assert [bags.of(item) for item in (1, 2, 3)] == [{}, {1: UNIT}, {}]


BAD = {
    "no item": (lambda: Bags([0], []), EmptyWorldError, "at least one item"),
    "reals as keys": (lambda: Bags([0, 1], [0.5]), InvalidArgumentError, "from_lists"),
    "a broken start": (lambda: Bags([0, 2, 1], [0]), ShapeError, "without falling"),
    "too few amounts": (lambda: Bags([0, 2], [0, 1], [1]), ShapeError, "many entries as key"),
    "half an amount": (lambda: Bags([0, 1], [0], [0.5]), InvalidArgumentError, "from_weights"),
    "nothing of a key": (lambda: Bags([0, 1], [0], [0]), InvalidArgumentError, "above zero"),
    "a key twice": (lambda: Bags([0, 2], [4, 4]), InvalidArgumentError, "with the sum of its amounts"),
    "a field of reals": (lambda: Bags.from_field(FIELDS, "year"), InvalidArgumentError, "round them"),
    "a negative weight": (lambda: Bags.from_weights([{"a": -1.0}]), InvalidArgumentError, "zero or more"),
    "no number": (lambda: Bags.from_weights([{"a": np.nan}]), InvalidArgumentError, "finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_bags_are_refused(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()
