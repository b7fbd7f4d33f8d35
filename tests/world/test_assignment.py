import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import DiffError, EmptyWorldError, InvalidArgumentError, ShapeError, UnknownLabelError
from factorwise.variables.domain import Domain
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment, Relabel

TAG = Domain("tag", ["N", "V", "O"])
BIT = Domain("bit", ["off", "on"])
VARIABLES = Variables(
    [
        Column.of("tag", TAG, ["N", "V", "O", "O"], observed=[False, True, False, False]),
        Column.hidden("bit", BIT, 2),
    ]
)


def world():
    return Assignment.from_labels(VARIABLES, {"tag": ["N", "V", "O", "O"], "bit": ["on", "off"]})


def test_labels_come_back_by_column():
    assert world().labels("tag").tolist() == ["N", "V", "O", "O"]
    assert {name: labels.tolist() for name, labels in world().to_labels().items()} == {
        "tag": ["N", "V", "O", "O"],
        "bit": ["on", "off"],
    }


def test_columns_left_out_keep_what_is_observed():
    start = Assignment.from_labels(VARIABLES, {"bit": ["on", "on"]})
    assert start.labels("tag").tolist() == ["N", "V", "N", "N"]
    assert start != Assignment.initial(VARIABLES)


@st.composite
def diffs(draw):
    """A function from a world to a random diff of it."""
    hidden = VARIABLES.hidden.tolist()
    chosen = draw(st.lists(st.sampled_from(hidden), unique=True, max_size=4))
    new = [draw(st.integers(0, int(VARIABLES.cardinality[v]) - 1)) for v in chosen]
    return chosen, new


@given(st.lists(diffs(), max_size=12))
def test_diffs_and_then_their_inverses_restore_the_labels(sequence):
    start = world()
    changed = start.copy()
    inverses = []
    for chosen, new in sequence:
        before = changed.copy()
        diff = changed.relabel(chosen, new)
        after = changed.after(diff)
        assert changed == before
        inverses.append(changed.apply(diff))
        assert changed == after
        assert inverses[-1] == diff.inverse()
    for inverse in reversed(inverses):
        changed.apply(inverse)
    assert changed == start
    assert changed.canonical() == start.canonical()


def test_worlds_are_compared_by_labels_and_hashed_by_their_key():
    assert world() == world()
    assert world() != world().after(world().relabel([0], [2]))
    assert world() != "something else"
    assert len({world().canonical(), world().canonical()}) == 1
    with pytest.raises(TypeError):
        hash(world())


def test_a_random_world_keeps_what_is_observed_and_depends_on_the_seed_alone():
    drawn = [Assignment.uniform(VARIABLES, seed) for seed in range(30)]
    assert all(w.values[1] == 1 for w in drawn)
    assert {int(w.values[0]) for w in drawn} == {0, 1, 2}
    assert drawn[3] == Assignment.uniform(VARIABLES, 3)


BAD_DIFFS = {
    "another old label": (Relabel((0,), (1,), (2,)), DiffError, "build the diff from the current world"),
    "an observed variable": (
        Relabel((1,), (1,), (0,)),
        DiffError,
        "row 1 of column 'tag', which is observed",
    ),
    "a label outside the domain": (Relabel((4,), (1,), (2,)), InvalidArgumentError, "use 0 to 1"),
    "a negative label": (Relabel((0,), (0,), (-1,)), InvalidArgumentError, "does not exist in domain 'tag'"),
    "a variable that is not there": (Relabel((6,), (0,), (1,)), DiffError, "variables 0 to 5"),
}


@pytest.mark.parametrize("name", BAD_DIFFS)
def test_a_diff_that_does_not_fit_is_refused_and_changes_nothing(name):
    diff, error, message = BAD_DIFFS[name]
    start = world()
    together = Relabel((5, *diff.variables), (0, *diff.old), (1, *diff.new))
    for wrong in (diff, together):
        with pytest.raises(error, match=message):
            start.apply(wrong)
    assert start == world()


BAD_WORLDS = {
    "too few values": (lambda: Assignment(VARIABLES, [0, 1]), ShapeError, "one code for each of 6"),
    "fractions": (lambda: Assignment(VARIABLES, np.zeros(6)), InvalidArgumentError, "from_labels"),
    "a code outside": (
        lambda: Assignment(VARIABLES, [0, 1, 3, 0, 0, 0]),
        InvalidArgumentError,
        "row 2 of column 'tag' has code 3, which does not exist in domain",
    ),
    "a code too large for the array": (
        lambda: Assignment(VARIABLES, [0, 1, 2**32, 0, 0, 0]),
        InvalidArgumentError,
        "does not exist in domain",
    ),
    "another label than observed": (
        lambda: Assignment(VARIABLES, [0, 0, 0, 0, 0, 0]),
        InvalidArgumentError,
        "is observed as 'V'",
    ),
    "an unknown label": (
        lambda: Assignment.from_labels(VARIABLES, {"bit": ["on", "of"]}),
        UnknownLabelError,
        "Did you mean 'off'",
    ),
    "too few labels": (
        lambda: Assignment.from_labels(VARIABLES, {"bit": ["on"]}),
        ShapeError,
        "one label per row",
    ),
    "no variables": (lambda: Assignment.initial(Variables([])), EmptyWorldError, "at least one column"),
    "uneven diff": (lambda: Relabel((1, 2), (0,), (1,)), DiffError, "one of each per variable"),
    "a variable twice": (lambda: Relabel((1, 1), (0, 0), (1, 2)), DiffError, "names a variable twice"),
    "a diff of nowhere": (lambda: world().relabel([9], [0]), DiffError, "variables 0 to 5"),
}


@pytest.mark.parametrize("name", BAD_WORLDS)
def test_bad_worlds_and_diffs_are_refused_with_a_remedy(name):
    build, error, message = BAD_WORLDS[name]
    with pytest.raises(error, match=message):
        build()
