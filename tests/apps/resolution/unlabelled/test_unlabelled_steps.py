"""The steps of resolution without labels, each on a small table."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution.normalize.forms import encoded
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.schema.header_words import header_words
from factorwise.apps.resolution.schema.kinds import infer_kinds
from factorwise.apps.resolution.unlabelled.about import PERSON, TEXT, About, choose_about
from factorwise.apps.resolution.unlabelled.anchors import CandidatePairs, context_columns
from factorwise.apps.resolution.unlabelled.decorations import plain_texts
from factorwise.apps.resolution.unlabelled.evidence import Evidence, ScoreCurve, calibrate
from factorwise.apps.resolution.unlabelled.fitting import Sums, null_share
from factorwise.apps.resolution.unlabelled.identity import TOP, identity_of
from factorwise.apps.resolution.unlabelled.model import FORBIDDEN, SUREST, UNLINKED, score_of
from factorwise.apps.resolution.unlabelled.namesakes import person_namesakes, text_namesakes
from factorwise.apps.resolution.unlabelled.prior import (
    LevelPrior,
    count_persons_alone,
    count_texts_alone,
)
from factorwise.apps.resolution.unlabelled.repeating import telling_columns
from factorwise.apps.resolution.unlabelled.sources import infer_source, is_one_per_source
from factorwise.apps.resolution.unlabelled.views import views_of
from factorwise.errors import InvalidArgumentError
from unlabelled_cases import mentions, persons, products, word


def about_of(table, columns=()):
    return choose_about(table, infer_kinds(table), columns)[0]


def some_words(count, parts=3, seed=0):
    rng = np.random.default_rng(seed)
    return [word(rng, parts) for _ in range(count)]


# what records are about


def test_first_and_last_names_are_one_person():
    assert about_of(persons(30)[0]).columns == ("first_name", "surname")
    assert about_of(persons(30)[0]).form == PERSON


def test_first_names_are_known_by_their_values_where_headers_say_nothing():
    given = [
        "John",
        "Mary",
        "Peter",
        "Anna",
        "Robert",
        "Maria",
        "Thomas",
        "Julia",
        "James",
        "Martin",
        "Daniel",
        "Sarah",
        "Paul",
        "Laura",
    ]
    given = [*given, *some_words(20, 2)]
    table = pa.table(
        {"a": some_words(34, 2, seed=1), "b": given, "c": some_words(34), "d": some_words(34, 6)}
    )
    assert about_of(table).columns == ("b", "c")
    assert about_of(table.select(["c", "b", "d"])).columns == ("b", "d")
    assert about_of(table.select(["a", "c", "d"])).form == TEXT


def test_headers_in_other_languages_are_read():
    table = pa.table({"Имя": ["анна", "пётр"] * 15, "Фамилия": ["иванова", "орлов", "белов"] * 10})
    assert choose_about(table, infer_kinds(table))[0].columns == ("Имя", "Фамилия")
    assert header_words("Prénom_du patientID") == {"prenom", "du", "patient", "id"}


def test_a_header_that_says_name_counts_for_more_than_the_kind():
    table = pa.table({"assignee_name": ["Acme", "Bolt", "Cog"] * 20, "words": some_words(60)})
    about, fields = choose_about(table, infer_kinds(table))
    assert infer_kinds(table)[0].kind == "category"
    assert (about.columns, about.form, fields[0].kind) == (("assignee_name",), TEXT, "text")


def test_names_of_other_things_are_no_identity():
    titles = [" ".join(some_words(3, seed=k)) for k in range(40)]
    table = pa.table({"brand_name": some_words(40), "journal_name": some_words(40, seed=1), "title": titles})
    assert about_of(table).columns == ("title",)


def test_columns_that_are_never_filled_together_are_one_identity():
    words = some_words(40, 4)
    table = pa.table(
        {
            "title": [one if k % 2 else None for k, one in enumerate(words)],
            "name": [None if k % 2 else one for k, one in enumerate(words)],
            "note": some_words(40, 6, seed=3),
        }
    )
    assert set(about_of(table).columns) == {"title", "name"}


def test_the_author_of_a_work_is_not_what_records_are_about_but_that_of_a_mention_is():
    authors = ["Ann Lee", "Robert Fox", "Maria Stone", "Peter Miller"] * 10
    titles = [" ".join(some_words(3, seed=k)) for k in range(40)]
    works = pa.table({"author": authors, "title": titles})
    assert about_of(works).columns == ("title",)
    assert about_of(works.append_column("coauthors", [authors])).columns == ("author",)


def test_the_user_says_what_records_are_about():
    table = persons(20)[0]
    assert about_of(table, ["town"]).columns == ("town",)
    assert about_of(table, ["surname", "first_name"]).columns == ("first_name", "surname")
    with pytest.raises(InvalidArgumentError, match="cannot be about 'nothing'"):
        about_of(table, ["nothing"])


def test_what_records_are_about_is_read_back():
    about = About(("a", "b"), TEXT, "because")
    assert About.from_dict(about.as_dict()) == about
    with pytest.raises(InvalidArgumentError, match="about is"):
        About.from_dict({"columns": [], "form": TEXT, "reason": ""})


# namesakes


def test_namesakes_of_common_names_are_more():
    last, given = np.repeat(np.arange(10), 10), np.tile(np.arange(10), 10)
    last, given = np.append(last, 10), np.append(given, 10)
    found = person_namesakes(last, given, given, np.zeros(101, bool), np.ones(101, int))
    assert found[:100] == pytest.approx(101 * (9.5 / 101) ** 2, rel=1e-3)
    assert found[100] < 0.01 < found[0]


def test_namesakes_do_not_depend_on_how_many_records_an_entity_has():
    last, given = np.arange(50) % 7, np.arange(50)
    once = person_namesakes(last, given, given, np.zeros(50, bool), np.ones(50, int))
    records = np.where(np.arange(50) == 7, 1_000, 1)
    often = person_namesakes(last, given, given, np.zeros(50, bool), records)
    assert often[7] == pytest.approx(once[7], rel=0.05)


def test_a_title_of_common_words_in_their_order_has_namesakes():
    titles = [f"{one} greatest hits" for one in some_words(100)] + ["greatest hits", "zuzu quibo xowi"]
    found = text_namesakes(titles)
    assert found[100] > 20 * found[101]


# identities


def person_levels(*names):
    table = pa.table({"name": list(names)})
    fields = [FieldSpec("name", "name", {"part": "full"})]
    identity = identity_of(normalize(table, fields), About(("name",), PERSON, ""))
    return identity.levels(np.zeros(len(names) - 1, int), np.arange(1, len(names))).tolist()


def test_levels_of_persons():
    names = [
        "Robert Miller",
        "Robert Miller",
        "Bob Miller",
        "R. Miller",
        "Robbert Millert",
        "Anna Miller",
        "Wu Fox",
    ]
    assert person_levels(*names) == [6, 5, 4, 3, 2, 1]
    assert person_levels("Ann B. Lee", "Ann C. Lee", "Lee Ann", None) == [3, 3, 0]


def text_levels(*texts):
    table = pa.table({"title": [*texts, *some_words(50, 5)]})
    normal = normalize(table, [FieldSpec("title", "text")])
    identity = identity_of(normal, About(("title",), TEXT, ""))
    return identity.levels(np.zeros(len(texts) - 1, int), np.arange(1, len(texts))).tolist()


def test_levels_of_texts():
    same = "the learning of hidden trees"
    assert text_levels(same, "The Learning of Hidden Trees!", "fast cars", None) == [TOP, 1, 0]
    assert text_levels(same, "the learnin of hidden trees")[0] >= 4


def test_other_numbers_keep_titles_apart():
    assert text_levels("history of rome part 3", "history of rome part 4")[0] <= 3
    assert text_levels("history of rome part iii", "history of rome part iv")[0] <= 3
    assert text_levels("history of rome 2nd edition", "history of rome 3rd edition")[0] <= 3


def test_endings_of_one_source_are_left_out():
    plain = some_words(60, 4)
    texts = encoded(pa.array([*plain, *(f"{one} {1950 + k}" for k, one in enumerate(plain))]))
    sources = np.repeat([0, 1], 60)
    found = plain_texts(texts, sources)
    assert (found.codes[:60] == found.codes[60:]).all()
    assert not (plain_texts(texts).codes[:60] == plain_texts(texts).codes[60:]).any()


def test_words_that_another_source_has_elsewhere_are_not_left_out():
    brands = ["nikon", "makita", "logitech"]
    first = [f"{brands[k % 3]} {word} black" for k, word in enumerate(some_words(60))]
    second = [f"{word} by {brands[k % 3]}" for k, word in enumerate(some_words(60))]
    found = plain_texts(encoded(pa.array([*first, *second])), np.repeat([0, 1], 60))
    values = found.values.take(pa.array(found.codes)).to_pylist()
    assert values[0] == first[0].removesuffix(" black")
    assert values[60] == second[0]


def test_legal_forms_of_firms_are_left_out():
    firms = some_words(30)
    texts = encoded(pa.array([*firms, *(f"{one} co ltd" for one in firms)]))
    found = plain_texts(texts)
    assert (found.codes[:30] == found.codes[30:]).all()


@pytest.mark.parametrize("form", ["S.p.A.", "K.K.", "GmbH & Co. KG", "Pty Ltd", "B.V."])
def test_legal_forms_of_several_parts_are_left_out(form):
    texts = [*some_words(30), *(f"{one} {form}" for one in some_words(30))]
    table = pa.table({"company": texts})
    identity = identity_of(normalize(table, [FieldSpec("company", "text")]), About(("company",), TEXT, ""))
    assert (identity.code[:30] == identity.code[30:]).all()


def test_beginnings_of_one_source_are_left_out():
    plain = some_words(60, 4)
    texts = encoded(pa.array([*plain, *(f"our new {one}" for one in plain)]))
    found = plain_texts(texts, np.repeat([0, 1], 60))
    assert (found.codes[:60] == found.codes[60:]).all()


def test_texts_whose_own_words_are_rarer_than_what_they_share_contradict_each_other():
    places = some_words(40)
    texts = [f"university of {place} department of physics" for place in places]
    texts += [f"univ of {places[0]} department of physics", f"{places[0]} hospital", f"{places[0]} school"]
    table = pa.table({"name": texts})
    identity = identity_of(normalize(table, [FieldSpec("name", "text")]), About(("name",), TEXT, ""))
    tested = np.array([1, 40])
    assert identity.levels(np.zeros(2, int), tested).tolist()[0] <= 3
    assert identity.levels(np.zeros(2, int), tested).tolist()[1] >= 4
    contradict = identity.compared._contradictions
    assert contradict(np.array([0, 0, 41]), np.array([1, 40, 42])).tolist() == [True, False, False]


def test_a_number_and_the_word_behind_it_are_no_code():
    texts = [f"{word} 40 inches wide ab{1000 + k}" for k, word in enumerate(some_words(60))]
    table = pa.table({"name": texts[:3] + texts[3:]})
    identity = identity_of(normalize(table, [FieldSpec("name", "text")]), About(("name",), TEXT, ""))
    codes = set(identity.compared._rare_codes.values.take(identity.compared._rare_codes.codes).to_pylist())
    assert "ab1000" in codes
    assert not any(code.endswith("inches") for code in codes)


def test_frequencies_of_levels_are_counted_where_names_are_all_there_is():
    same = np.array([0.0, 0.005, 0.015, 0.03, 0.1, 0.1, 0.75])
    other = np.array([0.0, 0.99, 0.007, 0.001, 1e-4, 1e-4, 1e-4])
    flat = np.zeros((7, 5))
    prior = LevelPrior(True, 0.3, 0.3, same, other, np.arange(4.0), flat)
    levels = np.repeat(np.array([4, 6], np.uint8), [300, 100])
    namesakes, weight = np.full(400, 0.01), np.ones(400)
    found = count_persons_alone(prior, levels, namesakes, weight, 1_000)
    assert found.same[4] > found.same[6]
    assert found.share * found.same[6] == pytest.approx(prior.share * same[6])
    usual = np.where(levels == 4, 300.0, 0.01)  # initials that hundreds of others have as well
    assert count_persons_alone(prior, levels, usual, weight, 1_000).same[4] < 0.2


def test_near_equal_texts_are_of_one_entity_if_they_are_more_than_the_tail_of_similar_ones():
    same = np.array([0.0, 0.001, 0.009, 0.05, 0.12, 0.22, 0.6])
    other, flat = np.full(7, 1e-3), np.zeros((7, 5))
    prior = LevelPrior(False, 0.3, 0.3, same, other, np.arange(4.0), flat, True)
    counts = {2: 1000, 3: 100, 4: 20, 5: 300}
    levels = np.repeat(np.array(list(counts), np.uint8), list(counts.values()))
    found = count_texts_alone(prior, levels, np.ones(len(levels)), 1_000)
    odds = found.formula(np.array([4, 5], np.uint8), np.ones(2), 1_000)
    assert odds[0] < 0.0 < odds[1]
    falling = np.repeat(np.array([2, 3, 4, 5], np.uint8), [1000, 500, 250, 125])
    found = count_texts_alone(prior, falling, np.ones(len(falling)), 1_000)
    assert (found.formula(np.array([4, 5], np.uint8), np.ones(2), 1_000) < 0.0).all()


def test_columns_that_repeat_the_identity_are_no_witnesses():
    table = persons(40)[0]
    whole = [f"{row['first_name']} {row['surname']}" for row in table.to_pylist()]
    table = table.append_column("full_name", [whole])
    about, fields = choose_about(table, infer_kinds(table))
    assert telling_columns(table, normalize(table, fields), about) == ["born", "town"]


# contexts and sources


def views(table, sources=None, columns=None):
    about, fields = choose_about(table, infer_kinds(table, leave_out=["source"]))
    normal = normalize(table, fields)
    names = telling_columns(table, normal, about) if columns is None else columns
    return views_of(normal, about, names, sources)


def test_a_paper_is_a_context_and_a_town_is_none():
    rng = np.random.default_rng(0)
    seen = views(mentions(120, 150)[0])
    assert "paper" in [seen.witnesses[k].name for k in context_columns(seen, rng)]
    assert context_columns(views(persons(100)[0]), rng) == []


NOTHING = Evidence((), ScoreCurve(np.zeros(0), np.zeros(0)))  # of other columns


def all_pairs(n):
    first, second = np.triu_indices(n, 1)
    return CandidatePairs(first, second)


@pytest.mark.parametrize("ending", ["", " ({year})"])
def test_one_per_source_is_seen_across_sources(ending):
    table, truth = products(80, ending=ending)
    sources = (np.array(table["source"].to_pylist()) == "b").astype(int)
    pool = all_pairs(len(truth))
    seen = views(table, sources, [])
    assert is_one_per_source(seen, NOTHING, pool, seen.identity.levels(*pool), [])
    anywhere = np.random.default_rng(1).integers(0, 2, len(truth))
    seen = views(table, anywhere, [])
    assert not is_one_per_source(seen, NOTHING, pool, seen.identity.levels(*pool), [])


def test_a_column_of_sources_is_known_by_its_header_and_its_few_values():
    table = products(50)[0]
    assert infer_source(table, []) == "source"
    assert infer_source(table, ["source"]) is None
    assert infer_source(table.rename_columns(["outlet", "title", "price"]), []) is None


# evidence


def test_sums_are_worth_what_anchors_and_null_pairs_say():
    rng = np.random.default_rng(0)
    anchors, null = rng.normal(2.0, 1.0, 4_000), rng.normal(-2.0, 1.0, 4_000)
    curve = calibrate(anchors, np.ones(4_000), null)
    at = np.array([-1.0, 0.0, 1.0])
    assert curve(at) == pytest.approx(4.0 * at, abs=0.6)  # the log of the ratio of the two densities
    twice = calibrate(2 * anchors, np.ones(4_000), 2 * null)  # two columns that say the same
    assert twice(2 * at) == pytest.approx(curve(at), abs=0.6)


def test_pairs_of_two_entities_that_share_much_take_the_worth_of_a_sum():
    line = ScoreCurve(np.array([-5.0, 5.0]), np.array([-5.0, 5.0]))
    none = ScoreCurve(np.array([-5.0, 5.0]), np.array([-1.0, 1.0]))
    share = np.zeros(7)
    share[2] = 0.5
    evidence = Evidence((), line, none, share)
    sums, levels = np.array([4.0, 4.0, -4.0]), np.array([2, 6, 2], np.uint8)
    mixed = np.log(0.5 * np.exp(-np.array([4.0, -4.0])) + 0.5 * np.exp(-np.array([0.8, -0.8])))
    assert evidence.worth(sums, levels) == pytest.approx([-mixed[0], 4.0, -mixed[1]])
    assert Evidence.from_dict(evidence.as_dict()).worth(sums, levels) == pytest.approx(
        evidence.worth(sums, levels)
    )


def test_anchors_that_look_like_null_pairs_are_counted():
    rng = np.random.default_rng(0)
    null, same = rng.normal(-5.0, 1.0, 4_000), rng.normal(5.0, 1.0, 300)
    anchors = np.append(same, rng.normal(-5.0, 1.0, 100))
    assert null_share(Sums(anchors, np.ones(400), null)) == pytest.approx(0.25, abs=0.05)
    assert null_share(Sums(same, np.ones(300), null)) == 0.0


def test_columns_that_say_nothing_are_worth_nothing():
    assert (ScoreCurve(np.zeros(0), np.zeros(0))(np.array([1.0, 5.0])) == 0.0).all()


def test_scores_are_odds_less_one():
    scores = score_of(np.array([FORBIDDEN, -10.0, 0.0, 1.0, 50.0]))
    assert scores == pytest.approx([FORBIDDEN, UNLINKED, 0.0, np.e - 1.0, np.expm1(SUREST)], rel=1e-5)
