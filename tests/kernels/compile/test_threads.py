import os
import threading

import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team, thread_count


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8, 100])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_part_is_worked_on_once(threads, count):
    ranges = []
    with Team(threads) as team:
        team.share(count, lambda first, last: ranges.append((first, last)))
    assert sorted(n for first, last in ranges for n in range(first, last)) == list(range(count))


def test_one_thread_works_where_it_is_called_and_several_work_elsewhere():
    workers = set()

    def note(first, last):
        workers.add(threading.current_thread())

    Team(1).share(100, note)
    assert workers == {threading.main_thread()}
    with Team(2) as team:
        team.share(100, note)
    assert len(workers - {threading.main_thread()}) >= 1


@pytest.mark.parametrize("threads", [1, 2])
def test_what_goes_wrong_in_a_part_is_raised(threads):
    def fail(first, last):
        raise ValueError(f"part {first}")

    with Team(threads) as team, pytest.raises(ValueError, match="part 0"):
        team.share(10, fail)


def test_a_team_that_was_closed_has_no_threads_left():
    before = threading.active_count()
    team = Team(3)
    team.share(50, lambda first, last: None)
    team.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("given", [None, -1])
def test_all_processors_of_the_process_are_the_default(given, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    assert thread_count(given) == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert thread_count(given) == 1


def test_a_number_of_threads_is_taken_as_given_unless_it_is_none():
    assert thread_count(7) == 7
    with pytest.raises(InvalidArgumentError, match=r"n_jobs.*at least 1, or None or -1"):
        thread_count(0)
