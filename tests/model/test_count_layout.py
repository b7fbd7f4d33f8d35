"""Tables of counts: which keys have one, and where they lie."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.clusterings.counts import BITS
from factorwise.model.clusterings.count_layout import KeptLayout, lay_out_counts


@st.composite
def cases(draw):
    """Keys of a few items, numbered with gaps, with amounts, kinds and groups or without."""
    n = draw(st.integers(1, 12))
    keys = draw(
        st.lists(st.sets(st.sampled_from([0, 3, 4, 2**40, 2**62]), max_size=4), min_size=n, max_size=n)
    )
    groups = draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return [sorted(own) for own in keys], None if groups is None else np.array(groups, np.int32)


def flat(keys):
    start = np.concatenate([[0], np.cumsum([len(own) for own in keys])]).astype(np.int64)
    return start, np.array([key for own in keys for key in own], np.int64)


@given(cases())
def test_keys_that_two_items_of_a_group_have_own_a_table(case):
    keys, groups = case
    start, key = flat(keys)
    amount, kind = np.arange(len(key)) % 5 + 1, np.arange(len(key)) % 3
    found = lay_out_counts("t", start, key, amount=amount, kind=kind, groups=groups)
    of = [0] * len(keys) if groups is None else groups.tolist()
    holders = Counter((of[item], k) for item, own in enumerate(keys) for k in own)
    tables, capacity = defaultdict(set), {}
    for item, own in enumerate(keys):
        span = found.spans[item]
        entries = found.entries[span["begin"] : span["end"]]
        first = int(start[item])
        kept = [at for at, k in enumerate(own) if holders[of[item], k] > 1]
        np.testing.assert_array_equal(
            found.shared[first : first + len(own)], [k in kept for k in range(len(own))]
        )
        np.testing.assert_array_equal(entries["amount"], amount[first:][kept])
        np.testing.assert_array_equal(entries["kind"], kind[first:][kept])
        for at, entry in zip(kept, entries, strict=True):
            tables[of[item], own[at]].add(int(entry["start"]))
            capacity[int(entry["start"])] = 1 << (BITS - int(entry["shift"]))
    assert all(len(starts) == 1 for starts in tables.values())  # a key has one table, whoever asks
    starts = sorted(capacity)
    assert len(starts) == len(tables)
    assert [0, *np.cumsum([capacity[at] for at in starts])] == [*starts, found.slots]  # side by side
    for name, (at,) in ((name, tuple(starts)) for name, starts in tables.items()):
        assert 2 * holders[name] <= capacity[at] < max(4 * holders[name], 5)
        assert found.group_slots[name[0]] <= at < found.group_slots[name[0] + 1]


@given(cases())
def test_what_a_group_looks_at_lies_together(case):
    keys, groups = case
    found = lay_out_counts("t", *flat(keys), groups=groups)
    of = np.zeros(len(keys), int) if groups is None else groups
    for group in range(of.max() + 1):
        items = found.group_item[found.group_start[group] : found.group_start[group + 1]]
        np.testing.assert_array_equal(items, np.flatnonzero(of == group))
        entries = [k for i in items for k in range(found.spans[i]["begin"], found.spans[i]["end"])]
        np.testing.assert_array_equal(entries, np.arange(*found.group_entries[group : group + 2]))
    assert found.group_entries[-1] == len(found.entries)
    assert found.group_slots[-1] == found.slots


def test_a_layout_is_kept_for_the_same_groups():
    kept = KeptLayout("t", *flat([[1], [1], [1, 2]]))
    groups = np.array([0, 0, 1], np.int32)
    whole, apart = kept.of(None), kept.of(groups)
    assert kept.of(groups.copy()) is apart
    assert (len(whole.entries), len(apart.entries)) == (3, 2)
    assert len(kept.of(None).entries) == 3


def test_more_slots_than_can_be_numbered_are_refused():
    with pytest.raises(InvalidArgumentError, match="counts can reach at most"):
        lay_out_counts("t", *flat([[1], [1]]), amount=np.array([1, 2**17]))
