"""Searches with checkpoints: stopped anywhere, taken up again, the same answer to the bit."""

import numpy as np
import pytest

from factorwise.apps.resolution import resolving
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.linking import link
from factorwise.apps.resolution.merge_odds import MergeOdds
from factorwise.apps.resolution.resolving import Keeping, draw_posterior, fingerprint, searched
from factorwise.errors import DataFileError
from factorwise.inference.mcmc.shards import search as linkage_search
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.io.checkpoints import FILE, read_checkpoint
from factorwise.kernels.compile.threads import Team
from linkage_cases import check
from resolution_cases import known_of, people_table

ALONE = Team(1)
PEOPLE = people_table(40)
KNOWN = known_of(PEOPLE)
SEARCH = LinkSearch(rounds=5, sweeps=1, hot=2.0, cold=0.5, extra=2)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(linkage_search, "ITEMS_PER_SHARD", 12)
    monkeypatch.setattr(resolving, "FEWEST_ITEMS", 0)


def linked(constraints=None):
    return link(PEOPLE, KNOWN, constraints=constraints, team=ALONE)


def ended(data, **more):
    found = searched(data, SEARCH, seed=more.pop("seed", 3), team=more.pop("team", ALONE), **more)
    return found, data.walk.labels.tolist()


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_search_stopped_after_any_round_ends_as_an_undisturbed_one(tmp_path, stop):
    undisturbed = ended(linked())

    def interrupt(progress):
        if progress.round == stop:
            raise KeyboardInterrupt

    keeping = Keeping(str(tmp_path), seconds=0.0)
    broken, *_ = ended(linked(), keeping=keeping, watch=interrupt)
    assert (broken.rounds, broken.reason) == (stop, "interrupted")
    rounds = []
    again = linked()
    assert ended(again, keeping=keeping, watch=lambda p: rounds.append(p.round)) == undisturbed
    assert rounds[0] == stop  # what that round did was not kept
    check(again.walk)


def test_a_search_that_has_ended_is_not_done_again(tmp_path):
    first = ended(linked(), keeping=Keeping(str(tmp_path), 0.0))
    rounds = []
    assert ended(linked(), keeping=Keeping(str(tmp_path), 0.0), watch=rounds.append) == first
    assert rounds == []


def test_checkpoints_are_left_as_often_as_asked(tmp_path, monkeypatch):
    clock = iter(np.arange(0.0, 1e4, 10.0).tolist())
    monkeypatch.setattr(resolving.time, "monotonic", lambda: next(clock))
    kept = []
    write = resolving.write_checkpoint
    monkeypatch.setattr(
        resolving, "write_checkpoint", lambda *given: (kept.append(given[2].numbers["round"]), write(*given))
    )
    ended(linked(), keeping=Keeping(str(tmp_path), seconds=45.0))
    assert 0 < len(kept) < SEARCH.rounds
    ended(linked(), keeping=Keeping(str(tmp_path / "never"), seconds=1e9))
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("other", ["seed", "settings", "start", "scores"])
def test_the_checkpoint_of_another_run_is_refused(tmp_path, other):
    ended(linked(), keeping=Keeping(str(tmp_path), 0.0))
    data, search, seed = linked(), SEARCH, 3
    if other == "seed":
        seed = 4
    elif other == "settings":
        search = LinkSearch(rounds=6, sweeps=1, hot=2.0, cold=0.5, extra=2)
    elif other == "start":
        data.walk.place_items(np.zeros(data.walk.n_items, int))
    else:
        data.walk.link_scores[0] += 1.0
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(DataFileError, match="another run"):
        searched(data, search, seed=seed, team=ALONE, keeping=Keeping(str(tmp_path), 0.0))
    assert (tmp_path / FILE).read_bytes() == before
    assert read_checkpoint(tmp_path, fingerprint(linked(), SEARCH, 3)) is not None


def test_constraints_make_another_run():
    tied = linked(Constraints(must=np.array([[0, 1]])))
    assert fingerprint(tied, SEARCH, 3) != fingerprint(linked(), SEARCH, 3)
    assert fingerprint(linked(), SEARCH, 3) == fingerprint(linked(), SEARCH, 3)


def test_the_answer_does_not_depend_on_the_number_of_threads(tmp_path):
    with Team(2) as two:
        assert ended(linked(), team=two) == ended(linked())


def test_draws_are_as_many_as_memory_allows(monkeypatch):
    walk = linked().walk
    monkeypatch.setattr(resolving, "POSTERIOR_MEMORY", 4 * walk.n_items * 7)
    assert draw_posterior(walk, MergeOdds(), seed=1).labels.shape == (7, walk.n_items)
    monkeypatch.setattr(resolving, "POSTERIOR_MEMORY", 1)
    assert draw_posterior(walk, MergeOdds(), seed=1).labels.shape == (5, walk.n_items)
    assert draw_posterior(walk, MergeOdds(), draws=3, seed=1).labels.shape == (3, walk.n_items)
