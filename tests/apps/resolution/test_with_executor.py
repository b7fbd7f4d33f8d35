"""Resolving by an executor: whoever joins, compares and searches, the answer is the same to the bit."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import linked_items, linking
from factorwise.apps.resolution.blocking import joins
from factorwise.apps.resolution.comparisons import record_ranges
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.normalize import normal_forms
from factorwise.apps.resolution.normalize.cut_rows import cut_rows, join_cuts
from factorwise.apps.resolution.normalize.forms import Lists, Numbers, Strings
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.distributed import LocalExecutor, Mixer
from factorwise.distributed.group_search import answer_group
from factorwise.errors import DataFileError
from factorwise.inference.mcmc.shards import component_search
from factorwise.kernels.compile.threads import Team
from group_cases import planted_groups
from record_cases import people

RECORDS = people(40)


@pytest.fixture(scope="module")
def resolver():
    return EntityResolver(passes=3, steps=10, rounds=8, n_jobs=1).fit(people(130)[-130:], "person", id="id")


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Cut the work of forty people into many tasks."""
    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 15)
    monkeypatch.setattr(record_ranges, "PAIRS_OF_A_TASK", 50)
    monkeypatch.setattr(record_ranges, "ROWS_OF_A_RANGE", 30)
    monkeypatch.setattr(linked_items, "ITEMS_AT_ONCE", 20)
    monkeypatch.setattr(joins, "PIECE", 40)
    monkeypatch.setattr(normal_forms, "ROWS_OF_A_STRETCH", 50)


class Counting(LocalExecutor):
    """An executor that counts calls of each function."""

    def __init__(self, threads):
        super().__init__(threads)
        self.calls = {}

    def stream(self, function, items):
        for place, answer in super().stream(function, items):
            self.calls[function.__name__] = self.calls.get(function.__name__, 0) + 1
            yield place, answer


def answered(resolver, **more):
    found = resolver.resolve(RECORDS, id="id", **more)
    return found.table(), found.found


def test_an_executor_changes_nothing_whatever_its_threads(resolver):
    wanted, search = answered(resolver)
    for threads in (1, 3):
        executor = Counting(threads)
        table, found = answered(resolver, executor=executor)
        assert table.equals(wanted)
        assert found == search
        stages = {
            "make_forms",
            "pairs_of_join",
            "best_of_pairs",
            "compare_pairs",
            "answer_group",
            "chances_of_range",
        }
        assert stages <= executor.calls.keys()
        assert min(executor.calls.values()) > 1


def test_constraints_hold_in_every_group(resolver):
    labels = resolver.resolve(RECORDS, id="id").labels
    pair = np.array([[0, int(np.flatnonzero(labels != labels[0])[0])]])
    must = resolver.resolve(RECORDS, id="id", executor=LocalExecutor(2), constraints=Constraints(must=pair))
    assert must.labels[pair[0, 0]] == must.labels[pair[0, 1]]
    mates = np.flatnonzero(labels == labels[0])[:2]
    cannot = Constraints(cannot=mates[None, :])
    apart = resolver.resolve(RECORDS, id="id", executor=LocalExecutor(2), constraints=cannot)
    assert len(mates) == 2
    assert apart.labels[mates[0]] != apart.labels[mates[1]]


@pytest.mark.parametrize("store", [False, True])
def test_a_run_that_was_stopped_goes_on_from_its_checkpoint_here_or_elsewhere(resolver, tmp_path, store):
    address = f"file://{tmp_path}/kept" if store else tmp_path / "kept"
    wanted = answered(resolver)

    def die(progress):
        if progress.round == 3:
            raise RuntimeError("killed")

    kept = {"checkpoint": address, "checkpoint_seconds": 0.0}
    with pytest.raises(RuntimeError, match="killed"):
        answered(resolver, executor=LocalExecutor(1), **kept, watch=die)
    told = []
    assert answered(resolver, checkpoint=address, watch=told.append) == wanted
    assert told[0].round == 3
    other = EntityResolver(rounds=7, n_jobs=1)
    other.knowledge_, other.history_ = resolver.knowledge_, []
    with pytest.raises(DataFileError, match="checkpoint of another run"):
        other.resolve(RECORDS, id="id", checkpoint=address)


def test_an_interrupt_in_a_search_that_prepares_ends_all(monkeypatch):
    def interrupted(group, weights, search, seed):
        answer = answer_group(group, weights, search, seed)
        return answer._replace(found=answer.found._replace(reason="interrupted"))

    monkeypatch.setattr(linking, "answer_group", interrupted)
    groups = component_search.find_groups(planted_groups())
    with pytest.raises(KeyboardInterrupt):
        linking._search_groups(groups, range(len(groups)), Team(1), LocalExecutor(2))


def test_confidence_is_computed_in_all_threads_of_the_team(monkeypatch):
    asked = []

    class Recorded(LocalExecutor):
        def __init__(self, threads):
            asked.append(threads)
            super().__init__(threads)

    monkeypatch.setattr(linked_items, "LocalExecutor", Recorded)
    monkeypatch.setattr(linked_items, "ITEMS_AT_ONCE", 50)
    links = planted_groups()
    linked = linked_items.LinkedItems(np.arange(links.n_items), links)
    with Team(3) as team:
        chances = linked.confidence(0.5, team)
    assert asked == [3]
    assert chances.tolist() == linked.confidence(0.5, Team(1)).tolist()


def test_weights_that_shards_learn_are_mixed_to_the_same_whoever_runs_them():
    made = [
        EntityResolver(passes=3, steps=10, rounds=8, n_jobs=1).fit(
            people(130)[-130:], "person", id="id", mixer=Mixer(LocalExecutor(threads), 3)
        )
        for threads in (1, 2)
    ]
    first, second = (one.knowledge_.weights.values for one in made)
    np.testing.assert_array_equal(first, second)
    assert made[0].score(RECORDS, "person") > 0.9


def test_two_parts_of_every_kind_of_form_are_put_together_as_they_were():
    texts = pa.array(["d", "a", "c", "b"])
    forms = {
        "strings": Strings(np.array([3, -1, 0, 3, 2], np.int32), texts),
        "lists": Lists(np.array([0, 2, 2, 3, 5, 6]), np.array([0, 3, 1, 1, 2, 0], np.int32), texts),
        "numbers": Numbers(np.array([1.0, np.nan, 2.0, 3.0, 4.0])),
        "vectors": Vectors(np.array([1, -1, 0, 1, 2], np.int32), np.eye(3, dtype=np.float32)),
    }
    for form in forms.values():
        one, two = (cut_rows(form, np.array(rows)) for rows in ((0, 1), (2, 3, 4)))
        both = join_cuts(one, two)
        assert both.to_list() == form.to_list()
        if hasattr(form, "frequencies"):
            known = dict(zip(texts.to_pylist(), form.frequencies().counts.tolist(), strict=True))
            for part in (one.form, two.form, both):
                of_part = zip(part.values.to_pylist(), part.frequencies().counts.tolist(), strict=True)
                assert all(known[text] == count for text, count in of_part)
                assert part.frequencies().present == form.frequencies().present
