"""Measures against their definitions by hand, and how they are cut into levels."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rapidfuzz import fuzz
from rapidfuzz.distance import DamerauLevenshtein, JaroWinkler

from factorwise.apps.resolution.comparisons import NOTHING, Comparer, Comparison, Cuts, OverlapPairs, planned
from factorwise.apps.resolution.comparisons import plan as plan_module
from factorwise.apps.resolution.comparisons.derived import RECORD
from factorwise.apps.resolution.comparisons.measures import RELATIONS
from factorwise.apps.resolution.comparisons.plan import witnesses
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from record_cases import people
from resolution_cases import FIELDS, compared, known_of, people_table, table_of

ALONE = Team(1)
WORDS = ["red fox", "red fox", "fox red", "blue fox", None, "green owl", "red fox", "blue ox"]
NUMBERS = [3.0, 3.5, None, -3.0, 0.0, 3.0, 1e300, 8.0]
LISTS = ["a|b", "b|a", "b|c", None, "d", "a|b|c|d", "", "e"]
SPECS = {
    "words": FieldSpec("words", "text"),
    "numbers": FieldSpec("numbers", "number"),
    "lists": FieldSpec("lists", "list", {"separator": "|"}),
}


def table(times=1):
    columns = {"words": WORDS, "numbers": NUMBERS, "lists": LISTS}
    return pa.table({name: values * times for name, values in columns.items()})


def all_pairs(n):
    first, second = np.nonzero(np.ones((n, n), bool))
    return first, second


def prepared(normal, field, form, measure, among=None):
    """Return a measure as a function of two arrays of rows."""
    (witness,) = witnesses(normal, [(field, form, measure)], among)
    return lambda first, second: witness.measure(first, second)[0]


def measured(name, form, measure, times=1):
    """What a measure says of the first rows of a table that stands there some times, as a square."""
    normal = normalize(table(times), [SPECS[name]])
    return prepared(normal, name, form, measure)(*all_pairs(len(WORDS))).reshape(len(WORDS), -1)


def by_hand(values, definition):
    """The same from a definition for two values that are there."""
    return np.array(
        [[math.nan if None in (a, b) else definition(a, b) for b in values] for a in values], np.float32
    )


def rarity(value):
    there = [word for word in WORDS if word is not None]
    return -math.log(there.count(value) / len(there))


def items_of(text):
    return set(text.split("|"))


LISTS_THERE = [text or None for text in LISTS]


def sets_of(values, split):
    return [None if value is None else split(value) for value in values]


def rarities(sets):
    """The -log of the share of the sets, of those that are there, that have a value."""
    there = [one for one in sets if one]
    return {
        value: max(-math.log(sum(value in one for one in there) / len(there)), 1e-3)
        for value in set().union(*there)
    }


def shared(sets):
    rare = rarities(sets)
    return lambda a, b: sum(rare[value] for value in a & b)


def containment(sets):
    rare = rarities(sets)
    return lambda a, b: shared(sets)(a, b) / min(sum(rare[value] for value in one) for one in (a, b))


def cosine(sets):
    rare = rarities(sets)

    def of(a, b):
        norms = [math.sqrt(sum(rare[value] ** 2 for value in one)) for one in (a, b)]
        return sum(rare[value] ** 2 for value in a & b) / (norms[0] * norms[1])

    return of


def grams(text):
    """Three characters in a row inside a word, or a shorter word."""
    words = text.split()
    return {word[k : k + 3] for word in words for k in range(max(len(word) - 2, 1))}


ITEMS = sets_of(LISTS_THERE, items_of)
TOKENS = sets_of(WORDS, lambda text: set(text.split()))
GRAMS = sets_of(WORDS, grams)


def likeness(scorer, highest=1.0):
    """Different strings are never quite alike."""
    return lambda a, b: 1.0 if a == b else min(scorer(a, b) / highest, 0.999)


def log_ratio(a, b):
    return abs(math.copysign(math.log1p(abs(a)), a) - math.copysign(math.log1p(abs(b)), b))


DEFINITIONS = {
    ("words", "text", "rarity"): (WORDS, lambda a, b: rarity(a) if a == b else 0.0),
    ("words", "text", "words"): (WORDS, likeness(fuzz.token_sort_ratio, 100.0)),
    ("numbers", "number", "distance"): (NUMBERS, lambda a, b: min(abs(a - b), 3.4028234663852886e38)),
    ("numbers", "number", "ratio"): (NUMBERS, log_ratio),
    ("lists", "items", "shared"): (ITEMS, shared(ITEMS)),
    ("lists", "items", "cosine"): (ITEMS, cosine(ITEMS)),
    ("lists", "items", "containment"): (ITEMS, containment(ITEMS)),
    ("words", "tokens", "containment"): (TOKENS, containment(TOKENS)),
    ("words", "grams", "cosine"): (GRAMS, cosine(GRAMS)),
    ("words", "grams", "containment"): (GRAMS, containment(GRAMS)),
}


@pytest.mark.parametrize("case", DEFINITIONS, ids=" ".join)
def test_a_measure_is_what_its_definition_says(case):
    values, definition = DEFINITIONS[case]
    np.testing.assert_allclose(measured(*case), by_hand(values, definition), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", DEFINITIONS, ids=" ".join)
def test_measures_do_not_depend_on_how_often_the_whole_table_stands_there(case):
    np.testing.assert_array_equal(measured(*case), measured(*case, times=3))


@pytest.mark.parametrize(
    ("measure", "scorer"),
    [
        ("jaro-winkler", JaroWinkler.normalized_similarity),
        ("edits", DamerauLevenshtein.normalized_similarity),
    ],
)
def test_likeness_is_what_the_scorer_gives_and_below_one_for_different_strings(measure, scorer):
    normal = normalize(table(), [FieldSpec("words", "category")])
    found = prepared(normal, "words", "text", measure)(*all_pairs(len(WORDS))).reshape(len(WORDS), -1)
    np.testing.assert_allclose(found, by_hand(WORDS, likeness(scorer)), rtol=1e-6)
    assert (found[0, 2:4] < 1.0).all()


def test_a_value_that_all_rows_have_is_still_more_than_a_different_one():
    normal = normalize(pa.table({"c": ["x", "x"]}), [FieldSpec("c", "category")])
    found = prepared(normal, "c", "text", "rarity")(np.array([0]), np.array([1]))
    assert found.tolist() == [np.float32(1e-3)]


NAMES = ["William", "Bill", "W.", "Wilhelmina", "Robert", None, "Fiona", "Phiona", "B.", "bill", "W"]
STANDS = {
    (0, 0): 1, (1, 9): 1, (0, 1): 2, (6, 7): 3, (0, 2): 4, (2, 10): 4, (0, 3): 5, (0, 4): 6, (1, 8): 4,
    (2, 8): 6, (0, 5): None, (5, 5): None,
}  # fmt: skip


@pytest.mark.parametrize("pair", STANDS)
def test_given_names_stand_to_each_other_in_one_of_six_ways(pair):
    normal = normalize(pa.table({"n": NAMES}), [FieldSpec("n", "name", {"part": "first"})])
    measure = prepared(normal, "n", "first", "given names")
    for one, two in (pair, pair[::-1]):
        found = measure(np.array([one]), np.array([two]))[0]
        assert STANDS[pair] == (None if np.isnan(found) else int(found))


# levels


def test_nothing_to_compare_is_level_zero_and_a_measure_of_zero_level_one():
    cuts = Cuts((1e-9, 0.5, 0.75), 4)
    values = np.array([np.nan, 0.0, 1e-3, 0.4999, 0.5, 0.74, 0.75, 99.0, np.inf], np.float32)
    assert cuts.levels(values).tolist() == [NOTHING, 1, 2, 2, 3, 3, 4, 4, 4]


def test_the_values_of_a_relation_are_its_levels():
    cuts = Cuts.of_relation(6)
    assert cuts.levels(np.array([np.nan, 1, 6, 3], np.float32)).tolist() == [0, 1, 6, 3]


def test_levels_say_which_values_they_hold():
    cuts = Cuts((float(np.float32(1e-9)), 0.5, 0.75), 4)
    assert [cuts.text(level) for level in range(5)] == [
        "missing", "zero", "below 0.5", "0.5 to 0.75", "from 0.75",
    ]  # fmt: skip
    assert Cuts.by_quantiles(np.zeros(3, np.float32)).text(2) == "above zero"
    assert Cuts.of_relation(6).text(2) == "relation 2"
    nickname = Comparison("n", "first", "given names", Cuts.of_relation(6))
    assert nickname.level_text(2) == RELATIONS["given names"][1] == "the same but for a nickname"
    assert nickname.level_text(0) == "missing"


@pytest.mark.parametrize("falling", [False, True])
def test_levels_hold_equally_many_values_but_at_the_alike_end_ever_fewer(falling):
    values = np.append(np.arange(1, 7001, dtype=np.float32), [0.0] * 50 + [np.nan] * 20)
    cuts = Cuts.by_quantiles(values, falling=falling)
    counts = np.bincount(cuts.levels(values), minlength=cuts.size + 1)
    parts = [1000] * 6 + [650, 210, 70, 35, 21, 7, 7]
    assert counts[:2].tolist() == [20, 50]
    assert np.abs(counts[2:] - (parts[::-1] if falling else parts)).max() <= 1


def test_the_largest_value_is_a_level_of_its_own_if_it_comes_up_often_enough():
    values = np.append(np.linspace(0.1, 0.5, 1000), [1.0, 1.0]).astype(np.float32)
    cuts = Cuts.by_quantiles(values)
    assert np.flatnonzero(cuts.levels(values) == cuts.size).tolist() == [1000, 1001]


@given(hnp.arrays(np.float32, st.integers(0, 40), elements=st.floats(0, 100, width=32) | st.just(np.nan)))
def test_levels_rise_with_the_value_and_never_leave_their_range(values):
    cuts = Cuts.by_quantiles(values)
    levels = cuts.levels(values)
    assert (levels == NOTHING).tolist() == np.isnan(values).tolist()
    assert list(cuts.edges) == sorted(set(cuts.edges))
    assert cuts.size == len(cuts.edges) + 1 <= 14
    there = levels[np.argsort(values)][: int((~np.isnan(values)).sum())]
    assert (np.diff(there.astype(int)) >= 0).all()
    assert ((there >= 1) & (there <= cuts.size)).all()
    assert ((levels == 1) == (values < np.float32(1e-9))).all()
    assert set(range(3, cuts.size + 1)) <= set(levels.tolist())


def test_one_value_above_zero_is_a_level_of_its_own():
    cuts = Cuts.by_quantiles(np.array([0, 2, 2, 2], np.float32))
    assert cuts.levels(np.array([0, 1, 2], np.float32)).tolist() == [1, 2, 3]


# plans


def test_forms_that_tell_no_two_pairs_apart_are_left_out():
    normal = normalize(
        pa.table({"a": ["x"] * 4, "b": list("xxyz")}), [FieldSpec(c, "category") for c in "ab"]
    )
    pairs = all_pairs(4)
    assert {one.field for one in planned(normal, *pairs)} == {"b", RECORD}
    same = normalize(pa.table({"a": ["x"] * 4}), [FieldSpec("a", "category")])
    assert not planned(same, *pairs)


def test_comparisons_come_back_from_what_a_file_holds():
    for one in known_of(people_table(20)).comparisons:
        assert Comparison.from_dict(one.as_dict()) == one


def test_where_there_are_many_pairs_slow_comparisons_are_left_out_or_replaced(monkeypatch):
    normal = normalize(table(), list(SPECS.values()))
    pairs = all_pairs(len(WORDS))
    all_of_them = {(one.field, one.form, one.measure) for one in planned(normal, *pairs)}
    many = OverlapPairs(*(np.resize(rows, plan_module.MANY_PAIRS + 1) for rows in pairs))
    fewer = {(one.field, one.form, one.measure) for one in planned(normal, *pairs, many)}
    of_records = {(RECORD, "cosine"), (RECORD, "smaller lead"), (RECORD, "larger lead")}
    assert all_of_them - fewer == {
        ("words", "grams", "cosine"), ("words", "text", "words"), ("words", "tokens", "shared"),
        ("numbers", "number", "ratio"),
        *((field, "grams", measure) for field, measure in of_records),
    }  # fmt: skip
    assert fewer - all_of_them == {(field, "tokens", measure) for field, measure in of_records}
    monkeypatch.setattr(plan_module, "MANY_PAIRS", 10)
    assert {(one.field, one.form, one.measure) for one in planned(normal, *pairs)} == fewer


def test_a_text_is_compared_by_its_codes_only_where_some_have_codes():
    texts = ["camera VN-4100PC", "camera vn4100pc", "the recorder ab12", "tape", "recorder AB-12", "disc"]
    pairs = all_pairs(len(texts))

    def forms(table):
        return {one.form for one in planned(normalize(table, [FieldSpec("t", "text")]), *pairs)}

    assert "codes" in forms(pa.table({"t": texts}))
    assert "codes" not in forms(pa.table({"t": ["red fox", "red box", "box 2", "owl", "red owl", "tin box"]}))


def test_levels_and_scores_of_many_pairs_are_those_of_each(monkeypatch):
    monkeypatch.setattr(plan_module, "CHUNK", 7)
    data = people_table(20)
    knowledge = known_of(data)
    pairs, levels = compared(data, knowledge)
    comparer = Comparer(normalize(data, FIELDS), knowledge.comparisons, pairs)
    tables = knowledge.weights.tables()
    with Team(2) as team:
        assert np.array_equal(comparer.all_levels(pairs.first, pairs.second, team), levels)
        scores = comparer.scores(tables, pairs.first, pairs.second, team)
    sums = [sum(t[level] for t, level in zip(tables, row, strict=True)) for row in levels]
    np.testing.assert_allclose(scores, sums, rtol=1e-4, atol=1e-5)


def test_a_record_that_says_nothing_has_no_weight_in_any_pair_and_changes_no_other_score():
    records = people(20)
    nobody = dict.fromkeys(records[0], "")
    knowledge = known_of(table_of(records))
    tables = knowledge.weights.tables()
    rows = np.arange(1, len(records))
    among = OverlapPairs(rows - 1, rows)
    before = Comparer(normalize(table_of(records), FIELDS), knowledge.comparisons, among)
    after = Comparer(normalize(table_of([*records, nobody]), FIELDS), knowledge.comparisons, among)
    scores = [one.scores(tables, rows - 1, rows, ALONE) for one in (before, after)]
    assert scores[0].any()
    assert scores[0].tolist() == scores[1].tolist()
    silent = np.full(len(records), len(records))
    assert not after.levels(silent, np.arange(len(records))).any()
    assert not after.scores(tables, silent, np.arange(len(records)), ALONE).any()


# leads: a pair against the other candidates of its records


def lead(value, others):
    """The share of a value in the sum of it and the highest other one."""
    return 0.0 if value == 0.0 else value / (value + max(others, default=0.0))


def leads_by_hand(similarity, pairs):
    """The leads of every pair of rows over the candidate pairs, for its first and its second row."""
    found = np.full((*similarity.shape, 2), np.nan)
    for a, b in zip(*np.nonzero(~np.isnan(similarity)), strict=True):
        for side, row in enumerate((a, b)):
            others = [similarity[pair] for pair in pairs if row in pair and {*pair} != {a, b}]
            others = [other for other in others if not np.isnan(other)]
            found[a, b, side] = lead(similarity[a, b], others)
    return found


@given(st.sets(st.sampled_from([(i, j) for j in range(len(WORDS)) for i in range(j)]), min_size=1))
def test_leads_are_over_the_best_other_candidate_of_either_record(pairs):
    normal = normalize(table(), [SPECS["words"]])
    candidates = sorted(pairs)
    among = OverlapPairs(*np.array(candidates).T)
    expected = leads_by_hand(measured("words", "grams", "cosine").astype(np.float64), candidates)
    for measure, choose in (("smaller lead", np.min), ("larger lead", np.max)):
        found = prepared(normal, "words", "grams", measure, among)(*among)
        chosen = [choose(expected[pair]) for pair in candidates]
        np.testing.assert_allclose(found, np.array(chosen, np.float32), rtol=1e-5)


def test_the_closest_candidate_leads_by_more_than_half_and_two_equal_ones_by_half():
    texts = ["alpha beta", "alpha beta", "alpha beta", "gamma delta", "gamma epsilon", "zeta", "gamma eta"]
    normal = normalize(pa.table({"t": texts}), [FieldSpec("t", "text")])
    among = OverlapPairs(np.array([0, 0, 3, 3]), np.array([1, 2, 4, 5]))
    smaller, larger = (
        prepared(normal, "t", "tokens", f"{which} lead", among)(*among) for which in ("smaller", "larger")
    )
    assert smaller.tolist() == [0.5, 0.5, 1.0, 0.0]
    assert larger.tolist() == [1.0, 1.0, 1.0, 0.0]


def test_leads_without_the_candidates_are_refused_with_what_to_give():
    normal = normalize(table(), [SPECS["words"]])
    with pytest.raises(InvalidArgumentError, match="give them as among"):
        prepared(normal, "words", "tokens", "larger lead")
    one = Comparison("words", "tokens", "larger lead", Cuts((0.5,), 2))
    with pytest.raises(InvalidArgumentError, match="give them as among"):
        Comparer(normal, [one])


def test_measures_of_one_form_are_the_same_together_and_alone():
    normal = normalize(table(), [SPECS["words"]])
    among = OverlapPairs(*all_pairs(len(WORDS)))
    names = ["shared", "cosine", "containment", "smaller lead", "larger lead"]
    (together,) = witnesses(normal, [("words", "grams", name) for name in names], among)
    for name, values in zip(names, together.measure(*among), strict=True):
        np.testing.assert_array_equal(values, prepared(normal, "words", "grams", name, among)(*among))
