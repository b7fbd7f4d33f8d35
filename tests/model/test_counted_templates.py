"""Pair templates declared as data: the same features as a pair function, and sums from counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.kernels.compile.primitives import overlap
from factorwise.model.clusterings.partition_templates import PairTemplate
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.templates import CountedTemplate, Key
from factorwise.testing import check_template
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition

N = 12
RNG = np.random.default_rng(3)
FIELDS = Fields(
    first=RNG.integers(-1, 3, N),
    middle=RNG.integers(0, 3, N),
    coauthors=RNG.integers(-1, 5, (N, 3)),
    year=RNG.normal(size=N),
)
KEYS = [
    Key("first", ("equal", "conflict")),
    Key("middle", ("conflict",), missing=0),
    Key(("first", "middle"), ("equal", "conflict"), missing=0),
    Key("coauthors"),
]


def by_hand(a, b):
    """The same features as a function of two records."""
    first = a.first >= 0 and b.first >= 0
    middle = a.middle > 0 and b.middle > 0
    known = a.first > 0 and b.first > 0 and middle
    both = a.first == b.first and a.middle == b.middle
    shared = overlap([v + 1 for v in a.coauthors], [v + 1 for v in b.coauthors])
    return (
        first and a.first == b.first,
        first and a.first != b.first,
        middle and a.middle != b.middle,
        known and both,
        known and not both,
        shared,
        1,
    )


MANY = Fields(**{f"f{k}": RNG.integers(0, 3, N) for k in range(33)})
TEMPLATE = CountedTemplate("counted", FIELDS, KEYS)
BY_HAND = PairTemplate("by hand", FIELDS, by_hand, TEMPLATE.statistic_names)


def test_statistics_are_named_after_the_keys():
    assert TEMPLATE.statistic_names == (
        "first equal",
        "first in conflict",
        "middle in conflict",
        "first+middle equal",
        "first+middle in conflict",
        "coauthors shared",
        "pair",
    )
    assert TEMPLATE.weight_name(5) == "counted: coauthors shared"


@given(st.lists(st.integers(0, 4), min_size=N, max_size=N), st.booleans())
def test_statistics_are_those_of_a_pair_function(labels, repels):
    world = Partition.from_keys(labels)
    counted = CountedTemplate("counted", FIELDS, KEYS, repels=repels)
    plain = PairTemplate("by hand", FIELDS, by_hand, TEMPLATE.statistic_names, repels=repels)
    np.testing.assert_array_equal(
        counted.statistics(world).to_dense(counted.size), plain.statistics(world).to_dense(plain.size)
    )


@pytest.mark.parametrize("repels", [False, True])
def test_differences_are_what_the_whole_world_says(repels):
    check_template(
        CountedTemplate("counted", FIELDS, KEYS, repels=repels), Partition.from_keys(np.arange(N) % 4)
    )


def test_the_compiled_pair_function_says_the_same():
    world = Partition.from_keys(np.arange(N) % 2)
    expected = TEMPLATE.statistics(world).to_dense(TEMPLATE.size)
    np.testing.assert_array_equal(BY_HAND.statistics(world).to_dense(TEMPLATE.size), expected)


def test_codes_at_the_end_of_the_range_and_many_combinations_are_told_apart():
    codes = np.array([2**31 - 1, 2**31 - 2, 2**31 - 1, 0])
    fields = Fields(a=codes, b=[1, 1, 1, 2**31 - 2], c=[0, 0, 0, 0])
    template = CountedTemplate("large", fields, [Key("a"), Key(("a", "b", "c"))], constant=False)
    together = Partition.from_labels([0, 0, 0, 0])
    np.testing.assert_array_equal(template.statistics(together).to_dense(2), [1, 1])


def test_a_factor_is_bounded_by_its_features():
    np.testing.assert_array_equal(TEMPLATE.bound, [1, 1, 1, 1, 1, 3, 1])


BAD = {
    "a feature that is none": (lambda: Key("first", ("same",)), InvalidArgumentError, "'equal', 'conflict'"),
    "no field": (lambda: Key(()), InvalidArgumentError, "one or more different fields"),
    "the same key twice": (
        lambda: CountedTemplate("twice", FIELDS, [Key("first"), Key("first", ("conflict",))]),
        InvalidArgumentError,
        "give the key once, with both features",
    ),
    "conflicts of rows": (
        lambda: CountedTemplate("rows", FIELDS, [Key("coauthors", ("conflict",))]),
        ShapeError,
        "the feature 'equal'",
    ),
    "rows in a conjunction": (
        lambda: CountedTemplate("rows", FIELDS, [Key(("first", "coauthors"))]),
        ShapeError,
        "a key of its own",
    ),
    "reals": (
        lambda: CountedTemplate("reals", FIELDS, [Key("year")]),
        InvalidArgumentError,
        "compare them with a PairTemplate",
    ),
    "nothing at all": (
        lambda: CountedTemplate("nothing", FIELDS, [], constant=False),
        InvalidArgumentError,
        "needs names for its statistics",
    ),
    "more keys than fit": (
        lambda: model_programs(
            Model([CountedTemplate("many", MANY, [Key(f"f{k}", ("conflict",)) for k in range(33)])]),
            Partition.singletons(N),
        ),
        NoCompiledFormError,
        "33 of them with conflicts",
    ),
    "items of another world": (
        lambda: model_programs(Model([TEMPLATE]), Partition.singletons(N + 1)),
        ShapeError,
        "same records",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_counted_is_refused(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()
