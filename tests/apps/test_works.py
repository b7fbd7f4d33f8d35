"""From reference strings to works and people: readings that others of the work speak for."""

import numpy as np
import pytest

from factorwise.apps.tagging.citations.reader import Citation, CitationReader
from factorwise.errors import InvalidArgumentError
from factorwise.pipelines.works import Reading, different_readings, find_people, find_works, joint_works

PEOPLE = [
    ("Ann", "Lee"), ("Bea", "Fox"), ("Carl", "Ray"), ("Dora", "Mann"), ("Emil", "Stone"), ("Fay", "Berg"),
]  # fmt: skip
TITLES = [
    "Keeping bees in cold winters", "The wax of old hives", "On honey and its price",
    "Queens without a colony", "Wasps that visit gardens", "A census of wild pollinators",
    "Dances of returning foragers", "Mites and their enemies",
]  # fmt: skip
JOURNALS = ["Journal of Hives", "Annals of Apiculture", "Insect Letters"]


def reference(work, style):
    """One of three ways to write a work."""
    (first, last), (second, name) = PEOPLE[work % 6], PEOPLE[(work + 1 + work // 6) % 6]
    journal, year, volume = JOURNALS[work % 3], 1990 + work, 3 + work
    if style == 0:
        return (
            f"{last}, {first[0]}., & {name}, {second[0]}. ({year}). {TITLES[work]}. {journal}, {volume}, 1-9."
        )
    if style == 1:
        people = f"{first} {last} and {second} {name}"
        return f'{people}, "{TITLES[work]}," {journal}, vol. {volume}, pp. 1-9, {year}.'
    return f"{last} {first[0]}, {name} {second[0]}. {TITLES[work]}. {journal}. {year};{volume}(2):1-9."


REFERENCES = [reference(work, style) for style in range(3) for work in range(len(TITLES))]


@pytest.fixture(scope="module", params=[1, 5])
def works(request):
    return find_works(REFERENCES, readings=request.param, n_jobs=1)


def test_references_of_one_work_have_its_number_and_those_of_others_do_not(works):
    assert works.work.tolist() == list(range(1, 9)) * 3
    assert works.work.dtype == np.int32
    titles = [reading.item["title"] for reading in works.readings]
    assert titles == TITLES * 3


def test_the_same_people_have_one_number_across_styles_and_works(works):
    for work in range(8):
        of_work = {works.people[work + 8 * style] for style in range(3)}
        assert len(of_work) == 1  # the same two, in the same order
    assert works.people[0][0] == works.people[6][0]  # Ann Lee of two works
    assert works.people[0][0] != works.people[1][0]


def test_the_table_has_a_row_for_each_reference(works):
    table = works.table()
    assert table.column_names[:4] == ["reference", "work", "authors", "people"]
    row = table.to_pylist()[16]
    assert (row["reference"], row["work"], row["title"], row["year"]) == (17, 1, TITLES[0], 1990)
    assert (row["volume"], row["issue"], row["page"], row["DOI"]) == ("3", "2", "1-9", None)
    assert row["authors"] == ["Lee, A", "Fox, B"]
    assert row["text"] == REFERENCES[16]
    assert 0.0 < row["probability"] <= 1.0


def test_a_second_thread_changes_nothing(works):
    again = [find_works(REFERENCES, readings=k, n_jobs=2).table() for k in (1, 5)]
    assert works.table() in again


def reading(title, share, **fields):
    return Reading(Citation(title, ()), {"title": title, **fields}, share)


def ambiguous(share):
    """Three references of each of eight works; the likeliest reading of the first has a wrong title."""
    given = [
        [reading(title, 1.0, page=f"{k}-{k + 9}", volume=str(k))]
        for k, title in zip([*range(11, 19)] * 3, TITLES * 3, strict=True)
    ]
    wrong = reading("Foxtrott and A. Lee. " + TITLES[0][:12], share, page="11-20", volume="11")
    given[0] = [wrong, given[0][0]._replace(probability=1.0 - share)]
    return given


def test_a_reading_that_agrees_with_the_others_of_the_work_wins():
    chosen, work = joint_works(ambiguous(0.6), n_jobs=1)
    assert chosen.tolist() == [1] + 23 * [0]
    assert work.tolist() == list(range(1, 9)) * 3


def test_a_reading_that_is_hardly_possible_does_not():
    chosen, _ = joint_works(ambiguous(1.0 - 1e-12), weight=1e6, n_jobs=1)
    assert chosen.tolist() == 24 * [0]


def test_two_authors_of_one_reference_are_never_one_person():
    people = [{"family": "Wang", "given": "Jing"}, {"family": "Wang", "given": "Jun"}]
    [both, again] = find_people(
        [{"author": people}, {"author": people}], np.array([1, 1], np.int32), n_jobs=1
    )
    assert both[0] != both[1]
    assert both == again


def test_readings_that_say_the_same_are_one():
    [best] = CitationReader.bundled(n_jobs=1).read_nbest([REFERENCES[0]], 12)
    assert len(best) == 12
    probabilities = [probability for _, probability in best]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) <= 1.0 + 1e-9
    [plain] = CitationReader.bundled(n_jobs=1).read([REFERENCES[0]])
    assert [field[:4] for field in best[0][0].fields] == [field[:4] for field in plain.fields]
    different = different_readings(best)
    assert 1 <= len(different) <= 12
    assert sum(reading.probability for reading in different) == pytest.approx(sum(probabilities))
    assert different[0].item["title"] == TITLES[0]


def test_few_references_and_odd_ones():
    assert find_works([REFERENCES[0]], n_jobs=1).work.tolist() == [1]
    odd = find_works(["", "... --- ..."], readings=3, n_jobs=1)
    assert odd.work.tolist() == [1, 2]
    assert odd.people == ((), ())
    with pytest.raises(InvalidArgumentError, match="there are no references"):
        find_works([])
    with pytest.raises(InvalidArgumentError, match="readings"):
        find_works(REFERENCES, readings=0)


def test_people_of_one_name_in_one_work_are_one_and_et_al_is_nobody():
    item = {"author": [{"family": "Lee", "given": "A."}, {"literal": "Bee Society"}, {"literal": "others"}]}
    longer = {"author": [{"family": "lee", "given": "Ann"}]}
    assert find_people([item, longer, {}], np.array([1, 1, 2]), n_jobs=1) == ((1, 2), (1,), ())
