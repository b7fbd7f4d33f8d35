"""Which labels may follow which: schemes against regular expressions, a user's pairs, and training labels."""

import re
from itertools import pairwise, product

import numpy as np
import pytest

from factorwise.apps.tagging.constraints import SCHEMES, LabelConstraints
from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.learning.chains.structure import Supervision

# Valid sequences, a letter for the prefix and a digit for the type of each token.
GRAMMAR = {
    "BIO": r"(O-|B1(I1)*|B2(I2)*)*",
    "IOB2": r"(O-|B1(I1)*|B2(I2)*)*",
    "IOB1": r"(O-|I1(I1|B1)*|I2(I2|B2)*)*",
    "IOE2": r"(O-|(I1)*E1|(I2)*E2)*",
    "BIOES": r"(O-|S1|S2|B1(I1)*E1|B2(I2)*E2)*",
    "IOBES": r"(O-|S1|S2|B1(I1)*E1|B2(I2)*E2)*",
    "BILOU": r"(O-|U1|U2|B1(I1)*L1|B2(I2)*L2)*",
}


def labels_of(scheme):
    prefixes = sorted(set(GRAMMAR[scheme]) & set("BIESLU"))
    return ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in "12")]


def allows(rules, path):
    return not (
        rules.not_first[path[0]]
        or rules.not_last[path[-1]]
        or any(rules.forbidden[a, b] for a, b in pairwise(path))
    )


def is_valid(scheme, labels):
    text = "".join("O-" if label == "O" else label.replace("-", "") for label in labels)
    return re.fullmatch(GRAMMAR[scheme], text) is not None


def supervision(*sentences):
    """What is known of labels given as numbers, None or sets of numbers; and where sentences begin."""
    flat = [label for sentence in sentences for label in sentence]
    sure = [-1 if label is None or isinstance(label, set) else label for label in flat]
    allowed = np.array([[label is None or (label == k if sure[i] >= 0 else k in label) for k in range(3)]
                        for i, label in enumerate(flat)])  # fmt: skip
    start = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
    return start, Supervision(np.array(sure, dtype=np.int32), np.arange(len(flat), dtype=np.int32), allowed)


def test_the_grammars_cover_every_scheme():
    assert set(GRAMMAR) == set(SCHEMES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_allows_exactly_the_valid_sequences(scheme):
    labels = labels_of(scheme)
    rules = LabelConstraints.of_scheme(labels, scheme)
    for length in (1, 2, 3):
        for path in product(range(len(labels)), repeat=length):
            assert allows(rules, path) == is_valid(scheme, [labels[code] for code in path]), path


def test_a_scheme_leaves_other_labels_alone():
    rules = LabelConstraints.of_scheme(["O", "PAD", "B-X", "I-X", ""], "BIO")
    assert rules.forbidden.tolist() == [
        [False, False, False, True, False],
        [False, False, False, True, False],
        [False, False, False, False, False],
        [False, False, False, False, False],
        [False, False, False, True, False],
    ]
    assert rules.not_first.tolist() == [False, False, False, True, False]


def test_types_may_contain_dashes_and_be_left_out():
    rules = LabelConstraints.of_scheme(["B-X-1", "I-X-1", "I-X-2", "B", "I"], "BIO")
    may_follow = ~rules.forbidden
    assert may_follow[:, 1].tolist() == [True, True, False, False, False]
    assert may_follow[:, 2].tolist() == [False, False, True, False, False]
    assert may_follow[:, 4].tolist() == [False, False, False, True, True]


def test_labels_of_another_scheme_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"'S-X' is no label of the scheme BIO.*another scheme"):
        LabelConstraints.of_scheme(["O", "B-X", "S-X"], "BIO")


def test_an_unknown_scheme_is_refused_with_the_known_ones():
    with pytest.raises(InvalidArgumentError, match=r"BIO, IOB2, .*but 'BOI'"):
        LabelConstraints.of_scheme(["O"], "BOI")


def test_pairs_add_to_what_is_forbidden_and_none_is_the_edge_of_a_sentence():
    labels = ["O", "B-X", "I-X"]
    before = LabelConstraints.of_scheme(labels, "BIO")
    rules = before.with_pairs(labels, [("B-X", "B-X"), (None, "O"), ("B-X", None)])
    assert rules.forbidden.tolist() == [[False, False, True], [False, True, False], [False, False, False]]
    assert rules.not_first.tolist() == [True, False, True]
    assert rules.not_last.tolist() == [False, True, False]
    assert not before.forbidden[1, 1]  # the rules one began with stay as they were


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("O", "B-Y"), r"names 'B-Y'.*none of the labels of the training data: 'O'"),
        ((None, None), r"names no label: give one"),
    ],
)
def test_pairs_that_name_no_label_are_refused(pair, message):
    with pytest.raises(InvalidArgumentError, match=message):
        LabelConstraints.none(2).with_pairs(["O", "B-X"], [pair])


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([[0, 1, 2], [2]], r"token 0 of sentence 1 has label 'I' at the beginning"),
        ([[1, 2], [0, 2, 0]], r"token 1 of sentence 1 has label 'I' after 'O'"),
        ([[1, 2], [None, 1]], r"token 1 of sentence 1 has label 'B' at the end"),
    ],
)
def test_training_labels_that_break_the_rules_are_refused_with_their_place(sentences, message):
    labels = ["O", "B", "I"]
    rules = LabelConstraints.of_scheme(labels, "BIO").with_pairs(labels, [("B", None)])
    with pytest.raises(InvalidArgumentError, match=f"{message}.*mend the label"):
        rules.check(labels, *supervision(*sentences))


def test_labels_that_keep_the_rules_pass_and_sentences_do_not_touch_each_other():
    labels = ["O", "B", "I"]
    rules = LabelConstraints.of_scheme(labels, "BIO").with_pairs(labels, [("O", "B")])
    rules.check(labels, *supervision([0, 0], [1, 2, None, 2], [{1, 2}, None]))
    with pytest.raises(InvalidArgumentError, match="after 'O'"):
        rules.check(labels, *supervision([0, 0, 1, 2]))


@pytest.mark.parametrize("known", [[0, {2}], [{0, 2}, 2], [None, {0}, {2}], [{2}, None]])
def test_partly_known_labels_none_of_which_keep_the_rules_are_refused(known):
    labels = ["O", "B", "I"]
    rules = LabelConstraints.of_scheme(labels, "BIO")
    with pytest.raises(ImpossibleError, match=r"sentence 1 obey the constraints: allow more"):
        rules.check(labels, *supervision([0, None], known))


def test_without_rules_anything_passes():
    LabelConstraints.none(3).check(["O", "B", "I"], *supervision([2, 2], [None, {2}]))
