import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, UnknownLabelError
from factorwise.variables.domain import Domain

text = st.text(st.characters(exclude_characters="\0"), max_size=4)
labels = st.one_of(
    st.lists(text, unique=True, min_size=1, max_size=8),
    st.lists(st.integers(-(2**62), 2**62), unique=True, min_size=1, max_size=8),
    st.lists(st.one_of(text, st.integers(-9, 9), st.tuples(st.integers(0, 3))), unique=True, min_size=1),
)


@given(labels, st.randoms(use_true_random=False))
def test_decoding_undoes_encoding_for_text_integers_and_objects(known, random):
    domain = Domain("d", known)
    given = random.choices(known, k=20)
    codes = domain.encode(given)
    assert codes.dtype == np.int32
    assert codes.tolist() == [known.index(label) for label in given]
    assert domain.decode(codes).tolist() == given


@given(labels, st.randoms(use_true_random=False))
def test_a_growing_domain_numbers_labels_by_appearance(known, random):
    given = random.choices(known, k=20)
    builder = Domain.growing("d")
    first = builder.encode(given[:10])
    second = builder.encode(given[10:])
    domain = builder.freeze()
    assert domain.labels == tuple(dict.fromkeys(given))
    assert domain.encode(given).tolist() == [*first.tolist(), *second.tolist()]
    assert len(builder) == len(domain)


def test_arrays_of_any_shape_are_encoded():
    domain = Domain("d", ["a", "b"])
    assert domain.encode(np.array([["b", "a"], ["a", "a"]])).tolist() == [[1, 0], [0, 0]]
    assert domain.encode(np.array(["b", "a"], dtype=object)).tolist() == [1, 0]
    assert domain.encode([]).tolist() == []


def test_numbers_are_not_mistaken_for_text():
    with pytest.raises(UnknownLabelError, match="1 is not among"):
        Domain("d", ["1", "2"]).encode(["2", 1])
    with pytest.raises(UnknownLabelError, match="'1' is not among"):
        Domain("d", [1, 2]).encode(["1"])
    assert Domain("d", [1, 2]).encode(np.array([2.0, 1.0])).tolist() == [1, 0]


def test_an_unknown_label_names_the_closest_one_and_both_remedies():
    domain = Domain("ner", ["O", "B-PER", "I-PER"])
    with pytest.raises(
        UnknownLabelError, match=r"Did you mean 'B-PER'\?.*domain.extended\('B-PERS'\).*unknown='other'"
    ):
        domain.encode(["O", "B-PERS"])
    with pytest.raises(UnknownLabelError, match="'X' is not among the 3 labels"):
        domain.code("X")


def test_unknown_labels_can_be_folded_into_other():
    domain = Domain("ner", ["O", "B-PER"], other="O")
    assert domain.encode(["B-PER", "B-LOC"], unknown="other").tolist() == [1, 0]
    with pytest.raises(InvalidArgumentError, match="other="):
        Domain("ner", ["O"]).encode(["X"], unknown="other")
    with pytest.raises(InvalidArgumentError, match="'error' or 'other'"):
        domain.encode(["X"], unknown="ignore")


def test_extending_keeps_the_codes():
    domain = Domain("d", ["a", "b"]).extended("c", "d")
    assert domain.encode(["d", "a"]).tolist() == [3, 0]
    assert "c" in domain


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Domain("d", ["a", "b", "a"]), "the label 'a' twice"),
        (lambda: Domain("d", ["a"]).extended("a"), "the label 'a' twice"),
        (lambda: Domain("d", ["a"], other="b"), "add it to labels"),
        (lambda: Domain("d", ["a"]).decode(np.array([1])), "use codes from 0 to 0"),
        (lambda: Domain("d", ["a"]).decode(np.array([-1])), "code -1 does not exist"),
    ],
)
def test_bad_domains_and_codes_are_refused(build, message):
    with pytest.raises(InvalidArgumentError, match=message):
        build()


def test_equal_domains_are_equal_and_hash_alike():
    assert Domain("d", ["a"]) == Domain("d", iter(["a"]))
    assert hash(Domain("d", ["a"])) == hash(Domain("d", ("a",)))
    assert Domain("d", ["a"]) != Domain("e", ["a"])
