"""Dictionaries and lists of strings against a loop over tokens."""

import collections
import decimal
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.apps.tagging.features import encoding
from factorwise.apps.tagging.features.encoding import AttributeEncoder
from factorwise.errors import InvalidArgumentError, ModelFileError, ShapeError

names = st.sampled_from(["", "a", "b", "w[0]=é", "漢", "x" * 30, "\ud800", "a\0b", "\0", "12345678"])
lists = st.lists(st.lists(st.lists(names, max_size=5), min_size=1, max_size=4), min_size=1, max_size=5)
numbers = st.sampled_from([1.0, 0.0, -2.5, 3, True, False])
mixed_tokens = st.one_of(
    st.dictionaries(names, st.one_of(numbers, names, st.lists(names, max_size=2)), max_size=4),
    st.lists(names, max_size=4),
    st.sets(names, max_size=3),
)
mixed = st.lists(st.lists(mixed_tokens, min_size=1, max_size=3), min_size=1, max_size=4)


def plain_items(token):
    if isinstance(token, set):
        return [(name, 1.0) for name in sorted(token)]
    if isinstance(token, list | tuple):
        return [(name, 1.0) for name in token]
    items = []
    for name, value in token.items():
        if isinstance(value, str):
            items.append((f"{name}:{value}", 1.0))
        elif isinstance(value, list):
            items += [(f"{name}:{inner}", 1.0) for inner in value]
        else:
            items.append((name, float(value)))
    return items


def entries(encoder, encoded):
    """Names and values of each token."""
    rows, called = encoded.rows, encoder.names()
    values = rows.value_of_each().tolist()
    return [
        [(called[rows.indices[entry]], values[entry]) for entry in range(a, b)]
        for a, b in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    ]


@given(st.one_of(lists, mixed), st.one_of(lists, mixed), st.sampled_from([1, 2, 4_096]))
def test_attributes_are_those_of_a_loop_over_tokens(train, test, at_once):
    encoder = AttributeEncoder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_AT_ONCE", at_once)
        encoded = encoder.fit_encode(train)
        later = encoder.encode(test)
    met = [plain_items(token) for sentence in train for token in sentence]
    in_order = list(dict.fromkeys(name for token in met for name, _ in token))
    assert encoder.names() == in_order
    assert encoder.width == encoded.rows.width == len(in_order)
    assert entries(encoder, encoded) == met
    assert encoded.start.tolist() == np.cumsum([0, *map(len, train)]).tolist()
    asked = [plain_items(token) for sentence in test for token in sentence]
    known = set(in_order)
    assert entries(encoder, later) == [[item for item in token if item[0] in known] for token in asked]
    place = {}
    for token in met:
        for number, (name, _) in enumerate(token):
            place.setdefault(name, number)
    assert encoder.slots().tolist() == [place[name] for name in in_order]


@given(mixed, st.integers(2, 3))
def test_rare_attributes_are_left_out_and_the_others_keep_their_order(train, min_frequency):
    encoder = AttributeEncoder(min_frequency=min_frequency)
    encoded = encoder.fit_encode(train)
    met = [plain_items(token) for sentence in train for token in sentence]
    count = collections.Counter(name for token in met for name, _ in token)
    kept = [name for name in count if count[name] >= min_frequency]
    assert encoder.names() == kept
    assert len(encoder.slots()) == encoder.width == len(kept)
    assert entries(encoder, encoded) == [[item for item in token if item[0] in kept] for token in met]


@given(mixed, mixed)
def test_a_restored_encoder_does_the_same(train, test):
    encoder = AttributeEncoder(min_frequency=2)
    encoder.fit_encode(train)
    arrays, metadata = encoder.to_arrays()
    assert all(array.dtype.kind in "iu" for array in arrays.values())
    restored = AttributeEncoder.from_arrays(arrays, metadata)
    assert restored.names() == encoder.names()
    assert restored.slots().tolist() == encoder.slots().tolist()
    assert entries(restored, restored.encode(test)) == entries(encoder, encoder.encode(test))
    assert restored.min_frequency == 2


@pytest.mark.parametrize(
    ("token", "expected"),
    [  # as python-crfsuite 0.9.12 shows them
        ({"a": 1.5}, {"a": 1.5}),
        ({"a": "x"}, {"a:x": 1}),
        ({"a": ""}, {"a:": 1}),
        ({"": "x"}, {":x": 1}),
        ({"": 2.0}, {"": 2}),
        ({"a": "1.5"}, {"a:1.5": 1}),
        ({"a": True, "b": False}, {"a": 1, "b": 0}),
        ({"a": {"b": 2.0, "c": "y", "d": True}}, {"a:b": 2, "a:c:y": 1, "a:d": 1}),
        ({"a": {"b": {"c": "d"}, "e": ["u", "v"]}}, {"a:b:c:d": 1, "a:e:u": 1, "a:e:v": 1}),
        ({"a": {}}, {}),
        ({"a": []}, {}),
        ({"a": {"x"}}, {"a:x": 1}),
        ({b"a": {b"b": b"c"}}, {"a:b:c": 1}),
        ({"a": [b"z"]}, {"a:z": 1}),
        ({"a": np.float32(1.25), "b": np.int64(3), "c": np.bool_(True)}, {"a": 1.25, "b": 3, "c": 1}),
        ({"a": np.str_("x")}, {"a:x": 1}),
        ({"a": 10**30}, {"a": 1e30}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (["a", "é", b"c"], {"a": 1, "é": 1, "c": 1}),
        (("a", "b"), {"a": 1, "b": 1}),
        ({"a", "b"}, {"a": 1, "b": 1}),
        (frozenset({"a"}), {"a": 1}),
        (np.array(["a", "b"]), {"a": 1, "b": 1}),
        ([], {}),
        ({}, {}),
    ],
)
def test_tokens_are_read_as_crfsuite_reads_them(token, expected):
    encoder = AttributeEncoder()
    ((*items,), _) = entries(encoder, encoder.fit_encode([[token, ["other"]]]))
    assert dict(items) == pytest.approx(expected, rel=1e-6)
    assert len(items) == len(expected)


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ({"a": ("x", "y")}, {"a:x": 1, "a:y": 1}),
        ({"a": frozenset({"x"})}, {"a:x": 1}),
        ({"a": decimal.Decimal("0.5")}, {"a": 0.5}),
        (types.MappingProxyType({"a": 2.0}), {"a": 2}),
        ({"a": "b\0c"}, {"a:b\0c": 1}),
    ],
)
def test_more_than_crfsuite_reads_is_read_in_the_same_spirit(token, expected):
    encoder = AttributeEncoder()
    assert dict(entries(encoder, encoder.fit_encode([[token]]))[0]) == expected


def test_what_is_named_twice_counts_twice():
    rows, _ = AttributeEncoder().fit_encode([[["a", "b", "a"]], [{"a:b": 2.0, "a": "b"}]])
    assert rows.to_dense().tolist() == [[2, 1, 0], [0, 0, 3]]


def test_values_are_stored_only_where_one_is_not_1():
    encoder = AttributeEncoder()
    assert encoder.fit_encode([[{"a": 1.0, "b": "x"}, ["c"]]]).rows.values is None
    assert encoder.encode([[{"a": 1, "unknown": 2.0}]]).rows.values is None
    rows = encoder.encode([[{"unknown": 5.0, "a": 2.0}], [["c"]]]).rows
    assert rows.values.tolist() == [2.0, 1.0]


def test_thousands_of_tokens_come_out_as_from_the_loop(seed):
    rng = np.random.default_rng(seed)
    data = [
        [[f"{place}={rng.zipf(1.3) % 9_000}" for place in range(8)] for _ in range(size)]
        for size in rng.integers(1, 60, size=150)
    ]
    encoder = AttributeEncoder()
    rows, _ = encoder.fit_encode(data)
    code_of = {}
    flat = [name for sentence in data for token in sentence for name in token]
    assert rows.indices.tolist() == [code_of.setdefault(name, len(code_of)) for name in flat]
    assert encoder.names() == list(code_of)
    assert (encoder.slots() == [int(name[0]) for name in code_of]).all()
    half = AttributeEncoder()
    half.fit_encode(data[:50])
    known = {name: code for code, name in enumerate(half.names())}
    assert half.encode(data).rows.indices.tolist() == [known[name] for name in flat if name in known]


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ("abc", InvalidArgumentError, "X is a str, not a list of sentences"),
        ({"a": 1}, InvalidArgumentError, "X is a dict, not a list of sentences"),
        (None, InvalidArgumentError, "X is a NoneType, not a list of sentences"),
        (["the", "cat"], InvalidArgumentError, "sentence 0 is the string 'the': X is a list of sentences"),
        ([{"a": 1}], InvalidArgumentError, "For a single sentence, give [X]"),
        ([[["a"]], 5], InvalidArgumentError, "sentence 1 is a int, not a list of tokens"),
        ([["the", "cat"]], InvalidArgumentError, "token 0 of sentence 0 is the string 'the'"),
        ([[["a"]], [["a"], b"cat"]], InvalidArgumentError, "token 1 of sentence 1 is the string b'cat'"),
        ([[["a"]], []], ShapeError, "sentence 1 has no tokens: leave it out"),
        ([], InvalidArgumentError, "give at least one"),
        ([[["a"], ["b", 3]]], InvalidArgumentError, "token 1 of sentence 0 has the attribute 3, a int"),
        ([[["a"], ["b", ["c"]]]], InvalidArgumentError, "attributes are strings"),
        ([[5]], InvalidArgumentError, "token 0 of sentence 0 is 5, a int"),
        ([[{1: 2.0}]], InvalidArgumentError, "has the attribute 1, a int"),
        ([[{"a": None}]], InvalidArgumentError, "has None, a NoneType, for 'a': give a number"),
        ([[{"a": 1j}]], InvalidArgumentError, "has 1j, a complex, for 'a'"),
        ([[{"a": np.zeros((2, 2))}]], InvalidArgumentError, "a ndarray, for 'a'"),
        ([[{"a": ["b", 3]}]], InvalidArgumentError, "has the attribute 3"),
        ([[[b"\xff"]]], InvalidArgumentError, "which is not UTF-8: decode it first"),
        (
            [[{"a": 1.0}], [{"b": 2.0}, {"c": 1.0, "d": float("nan")}]],
            InvalidArgumentError,
            "token 1 of sentence 1 has nan for 'd': values are finite numbers",
        ),
        ([[{"a": float("inf")}]], InvalidArgumentError, "has inf for 'a'"),
        ([[{"a": 1e39}]], InvalidArgumentError, "has 1e+39 (in 32 bits) for 'a'"),
        ([[{"a": 10**400}]], InvalidArgumentError, "has inf for 'a'"),
        ([[{"a": {"b": float("nan")}}]], InvalidArgumentError, "has nan for 'a:b'"),
    ],
)
def test_what_is_not_sentences_of_attributes_is_refused_with_its_place(sentences, error, message):
    with pytest.raises(error) as refused:
        AttributeEncoder().fit_encode(sentences)
    assert message in str(refused.value)


def test_places_are_told_beyond_the_first_tokens():
    data = [[["a"]] * 2_000 for _ in range(3)]
    data[2][1_950] = {"x": float("nan")}
    with pytest.raises(InvalidArgumentError, match="token 1950 of sentence 2 has nan for 'x'"):
        AttributeEncoder().fit_encode(data)


def test_values_are_checked_also_where_the_attribute_is_unknown():
    encoder = AttributeEncoder()
    encoder.fit_encode([[["a"]]])
    with pytest.raises(InvalidArgumentError, match="has nan for 'b'"):
        encoder.encode([[{"b": float("nan")}]])


def test_no_sentences_can_be_encoded():
    encoder = AttributeEncoder()
    encoder.fit_encode([[["a"]]])
    rows, start = encoder.encode([])
    assert (len(rows), rows.width, start.tolist()) == (0, 1, [0])


def test_learning_again_forgets_what_was_learned():
    encoder = AttributeEncoder()
    encoder.fit_encode([[["a", "b"]]])
    encoder.fit_encode([[["c"]]])
    assert (encoder.names(), encoder.width) == (["c"], 1)


def test_damaged_arrays_are_refused():
    encoder = AttributeEncoder()
    encoder.fit_encode([[["a", "b"]]])
    arrays, metadata = encoder.to_arrays()
    with pytest.raises(ModelFileError, match="has 1 numbers for 2 attributes"):
        AttributeEncoder.from_arrays(arrays | {"slots": arrays["slots"][:1]}, metadata)
    with pytest.raises(ModelFileError, match="has a string twice"):
        AttributeEncoder.from_arrays(arrays | {"text": np.array([65, 65], np.uint8)}, metadata)
