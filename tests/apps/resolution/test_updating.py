"""New records placed into known entities."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.training import entity_numbers, learn
from factorwise.apps.resolution.training.link_learning import LinkTraining
from factorwise.apps.resolution.updating import below, place, start_labels
from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from resolution_cases import FIELDS, RULES, clusters, compared, people_table

ALONE = Team(1)
PEOPLE = people_table(40)
TRUTH = entity_numbers(PEOPLE, "person")
SEARCH = LinkSearch(rounds=6)


@pytest.fixture(scope="module")
def knowledge():
    """What was learned of other people."""
    others = people_table(120)
    learner = LinkTraining(passes=2, steps=10)
    entity = entity_numbers(others, "person")
    how = {"learner": learner, "search": SEARCH, "seed": 1, "team": ALONE, "tell": lambda text: None}
    return learn(others, FIELDS, entity, rules=RULES, **how)


def placed(knowledge, known, table=PEOPLE, **more):
    return place(table, np.asarray(known), knowledge, SEARCH, **{"seed": 2, "team": ALONE, **more})


def last_of_each():
    """Which records are the last of their person: these will be new."""
    return np.append(TRUTH[1:] != TRUTH[:-1], True)


def test_new_records_join_the_entities_they_belong_to(knowledge):
    found = placed(knowledge, np.where(last_of_each(), -1, TRUTH))
    assert clusters(found.labels) == clusters(TRUTH)


def test_records_of_new_entities_find_each_other(knowledge):
    newcomers = TRUTH % 4 == 0
    found = placed(knowledge, np.where(newcomers, -1, TRUTH))
    assert clusters(found.labels) == clusters(TRUTH)


def test_only_what_is_linked_with_new_records_and_their_entities_is_weighed(knowledge):
    new = np.zeros(len(TRUTH), bool)
    new[5] = True
    known = np.where(new, -1, TRUTH)
    found = placed(knowledge, known)
    pairs, _ = compared(PEOPLE, knowledge)
    linked = {*pairs.first[pairs.second == 5].tolist(), *pairs.second[pairs.first == 5].tolist()}
    touched = {known[row] for row in linked}
    wanted = [row for row in range(len(TRUTH)) if new[row] or known[row] in touched]
    assert found.weighed.tolist() == wanted
    assert 2 < len(wanted) < len(TRUTH) / 2
    assert found.linked.walk.n_items == len(wanted)


def test_what_is_not_touched_stays_even_if_it_is_wrong(knowledge):
    new = np.zeros(len(TRUTH), bool)
    new[5] = True
    weighed = placed(knowledge, np.where(new, -1, TRUTH)).weighed
    rest = np.setdiff1d(np.arange(len(TRUTH)), weighed)
    wrong = TRUTH.copy()
    wrong[rest] = wrong[rest[0]]
    labels = placed(knowledge, np.where(new, -1, wrong)).labels
    assert len(set(labels[rest].tolist())) == 1
    assert clusters(labels[weighed]) == clusters(TRUTH[weighed])


def test_old_records_move_where_the_new_evidence_says_so(knowledge):
    person = np.flatnonzero(TRUTH == 0)
    assert len(person) == 3
    known = TRUTH.copy()
    known[person[1]] = 1_000  # by itself, though it is the same person
    known[person[2]] = -1
    labels = placed(knowledge, known).labels
    assert len(set(labels[person].tolist())) == 1


def test_entities_may_have_any_numbers(knowledge):
    known = np.where(last_of_each(), -1, TRUTH)
    shifted = np.where(known >= 0, known * 37 + len(TRUTH) - 5, -1)
    assert clusters(placed(knowledge, shifted).labels) == clusters(placed(knowledge, known).labels)


def test_an_update_equals_resolving_all_anew_on_an_easy_table(knowledge):
    everyone_new = placed(knowledge, np.full(len(TRUTH), -1))
    one_by_one = placed(knowledge, np.where(last_of_each(), -1, TRUTH))
    assert clusters(everyone_new.labels) == clusters(one_by_one.labels)
    assert everyone_new.weighed.tolist() == list(range(len(TRUTH)))


def test_what_must_and_must_not_be_together_holds_for_new_and_old_records(knowledge):
    person = np.flatnonzero(TRUTH == 0)
    other, far = np.flatnonzero(TRUTH == 5)[0], np.flatnonzero(TRUTH == 8)
    known = np.where(np.arange(len(TRUTH)) == person[2], -1, TRUTH)
    limits = Constraints(
        must=np.array([[person[2], other]]), cannot=np.array([[person[2], person[0]], [far[0], far[1]]])
    )
    found = placed(knowledge, known, constraints=limits)
    assert found.labels[person[2]] == found.labels[other]
    assert found.labels[person[2]] != found.labels[person[0]]
    assert found.labels[far[0]] != found.labels[far[1]]  # though no new record touches them
    rest = ~np.isin(TRUTH, [0, 5, 8])
    assert clusters(found.labels[rest]) == clusters(TRUTH[rest])


def test_records_of_two_old_entities_that_must_be_together_come_together(knowledge):
    one, two = (np.flatnonzero(number == TRUTH) for number in (5, 8))
    known = np.where(np.arange(len(TRUTH)) == 0, -1, TRUTH)
    labels = placed(knowledge, known, constraints=Constraints(must=np.array([[one[0], two[0]]]))).labels
    assert labels[one[0]] == labels[two[0]]
    assert set(np.flatnonzero(labels == labels[one[0]]).tolist()) <= {*one.tolist(), *two.tolist()}


def test_no_source_has_an_entity_twice_not_even_an_old_one(knowledge):
    sources = np.zeros(len(TRUTH), np.int32)
    for person in range(TRUTH.max() + 1):
        rows = np.flatnonzero(person == TRUTH)
        sources[rows] = np.arange(len(rows))
    limits = Constraints(sources=sources, one_per_source=True)
    known = np.where(np.arange(len(TRUTH)) == 2, -1, TRUTH)
    assert clusters(placed(knowledge, known, constraints=limits).labels) == clusters(TRUTH)
    crowded = np.flatnonzero(TRUTH == 9)
    sources[crowded] = 0
    found = placed(knowledge, known, constraints=limits)
    assert len(set(found.labels[crowded].tolist())) == len(crowded)
    sources[2] = sources[0]  # the new record and an old one of its person
    labels = placed(knowledge, known, constraints=limits).labels
    assert labels[2] != labels[0]


def test_an_item_that_must_be_one_with_an_old_record_starts_in_its_entity():
    start, unit = np.array([7, 7, 3, 20, 21]), np.array([0, 1, 2, 2, 3])
    assert start_labels(start, unit, 4, Constraints()).tolist() == [7, 7, 3, 21]
    limits = Constraints(cannot=np.array([[0, 1], [0, 2]]))
    apart = start_labels(start, unit, 4, limits).tolist()
    assert (apart[0], apart[2], apart[3]) == (7, 3, 21)
    assert apart[1] > 21


def test_constraints_that_contradict_each_other_are_refused(knowledge):
    limits = Constraints(must=np.array([[0, 1]]), cannot=np.array([[1, 0]]))
    with pytest.raises(InvalidArgumentError, match="must be together and must not be"):
        placed(knowledge, np.where(last_of_each(), -1, TRUTH), constraints=limits)


def test_known_entities_must_be_said_of_each_record_and_some_must_be_new(knowledge):
    with pytest.raises(InvalidArgumentError, match=f"one for each of {len(TRUTH)} records"):
        placed(knowledge, TRUTH[:-1])
    with pytest.raises(InvalidArgumentError, match="-1 for the new ones"):
        placed(knowledge, TRUTH)


def test_new_records_stand_below_old_ones_as_far_as_their_columns_go():
    old = pa.table({"id": ["a", "b"], "town": ["x", "y"], "source": ["s", "s"], "extra": [1, 2]})
    new = pa.table({"town": [7], "id": ["c"]})
    assert below(old, new, ["town", "extra"], "id").to_pylist() == [
        {"town": "x", "extra": 1, "id": "a"},
        {"town": "y", "extra": 2, "id": "b"},
        {"town": "7", "extra": None, "id": "c"},
    ]
    assert below(old, new, ["town"], None).to_pylist() == [{"town": "x"}, {"town": "y"}, {"town": "7"}]
    with pytest.raises(DataFileError, match="'a'"):
        below(old, old, ["town"], "id")
