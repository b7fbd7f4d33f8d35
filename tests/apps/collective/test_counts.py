"""Counts by time and place: how they are laid out, and what is refused."""

import numpy as np
import pytest

from factorwise.apps.collective import Counts
from factorwise.errors import CountsError, DataFileError, ShapeError

ROWS = [("1", "a", 5), ("1", "b", 3), ("2", "a", 4), ("2", "b", 4), ("10", "a", 1), ("10", "b", 7)]


def records(rows=ROWS):
    return [{"time": time, "place": place, "count": count} for time, place, count in rows]


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def test_times_are_in_the_order_of_their_numbers():
    counts = Counts.read(records(ROWS[::-1]))
    assert counts.places == ("a", "b")
    assert counts.series[0].times == ("1", "2", "10")
    np.testing.assert_array_equal(counts.series[0].counts, [[5, 3], [4, 4], [1, 7]])


def test_times_that_are_no_numbers_are_in_the_order_of_their_text():
    rows = [("2020-02-01", "a", 1), ("2019-12-31", "a", 2)]
    assert Counts.read(records(rows)).series[0].times == ("2019-12-31", "2020-02-01")


def test_a_count_that_is_empty_and_a_record_that_is_not_there_are_missing(tmp_path):
    path = write(tmp_path / "c.csv", ["time,place,count", "1,a,5", "1,b,", "2,b,4", "3,a,nan", "3,b,2"])
    np.testing.assert_array_equal(Counts.read(path).series[0].counts, [[5, np.nan], [np.nan, 4], [np.nan, 2]])


def test_a_sequence_has_the_times_of_all_between_its_first_and_last():
    rows = [("1", 0), ("1", 1), ("1", 2), ("2", 0), ("2", 2), ("3", 1), ("3", 2)]
    table = [{"sequence": s, "time": t, "place": "a", "count": 1} for s, t in rows]
    assert [series.times for series in Counts.read(table).series] == [
        ("0", "1", "2"),
        ("0", "1", "2"),
        ("1", "2"),
    ]


def test_places_may_be_given_and_then_need_no_counts():
    counts = Counts.read(records(), places=("c", "b", "a"))
    np.testing.assert_array_equal(counts.series[0].counts[0], [np.nan, 3, 5])
    again = Counts.read(records()).reorder_places(("c", "b", "a"))
    np.testing.assert_array_equal(again.series[0].counts, counts.series[0].counts)


@pytest.mark.parametrize("count", ["-1", "inf"])
def test_a_negative_or_infinite_count_is_refused_by_record_time_and_place(tmp_path, count):
    path = write(tmp_path / "c.csv", ["time,place,count", "1,a,5", f"7,b,{count}"])
    with pytest.raises(
        CountsError, match=r"c\.csv, record 2 \(time '7', place 'b'\).*at least zero; leave it"
    ):
        Counts.read(path)


def test_a_count_that_is_no_number_is_refused(tmp_path):
    path = write(tmp_path / "c.csv", ["time,place,count", "1,a,5", "1,b,many"])
    with pytest.raises(DataFileError, match=r"record 2: 'count' is 'many'.*leave"):
        Counts.read(path)


def test_a_time_and_place_twice_is_refused():
    with pytest.raises(CountsError, match=r"record 3 \(time '1', place 'a'\).*record 1 already"):
        Counts.read(records([("1", "a", 5), ("1", "b", 3), ("1", "a", 6)]))


def test_an_unknown_place_is_refused_with_the_nearest_known_one():
    with pytest.raises(CountsError, match=r"record 2 .*'harbor'.*Did you mean 'harbour'\?"):
        Counts.read(records([("1", "harbour", 5), ("1", "harbor", 3)]), places=("harbour", "town"))
    with pytest.raises(CountsError, match=r"'b' is not among the 1 known places"):
        Counts.read(records()).reorder_places(("a",))


def test_an_empty_place_is_refused(tmp_path):
    path = write(tmp_path / "c.csv", ["time,place,count", "1,a,5", "1,,3"])
    with pytest.raises(DataFileError, match=r"record 2: 'place' is empty"):
        Counts.read(path)


def test_arrays_are_taken_with_names_or_without():
    counts = Counts.of([[[1, 2], [3, 4]], [[5, 6], [7, np.nan]]], places=["x", "y"])
    assert [series.name for series in counts.series] == ["1", "2"]
    assert counts.series[1].complete_times == [0]
    assert counts.series[0].times == ("0", "1")


def test_arrays_with_negative_counts_or_other_shapes_are_refused():
    with pytest.raises(CountsError, match=r"sequence 1, time '1', place '0'.*-3"):
        Counts.of([[1, 2], [-3, 4]])
    with pytest.raises(ShapeError, match="give one name for each"):
        Counts.of([[1, 2]], places=["a"])
    with pytest.raises(ShapeError, match=r"\(times, places\)"):
        Counts.of([1, 2])
