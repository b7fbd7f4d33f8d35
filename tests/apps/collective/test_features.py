"""Features of moves: tables, times, defaults, and what is refused."""

import numpy as np
import pytest

from factorwise.apps.collective import TransitionFeatures, by_distance, read_distances, staying
from factorwise.errors import DataFileError, InvalidArgumentError, ShapeError


def pairs(**more):
    return [{"from": i, "to": j, "near": float(i == j), **more} for i in "ab" for j in "ab"]


def test_a_table_of_pairs_holds_at_all_times():
    features = TransitionFeatures.read(pairs())
    assert (features.places, features.names, features.is_general) == (("a", "b"), ("near",), True)
    np.testing.assert_array_equal(features.values[0, :, :, 0], np.eye(2))
    assert features.tables_for([("1", "5"), ("2", "6")]).tolist() == [0, 0]


def test_pairs_that_a_table_does_not_have_are_impossible():
    features = TransitionFeatures.read(pairs()[:-2] + pairs()[-1:])
    assert features.possible[0].tolist() == [[True, True], [False, True]]


def test_a_place_that_nobody_can_leave_or_stay_at_is_refused():
    with pytest.raises(InvalidArgumentError, match="no move from place 'b' is possible"):
        TransitionFeatures.read(pairs()[:2])


def test_a_table_may_differ_by_time_and_by_sequence():
    table = [*pairs(time="1", sequence="x"), *pairs(time="2", sequence="x"), *pairs(time="1", sequence="y")]
    features = TransitionFeatures.read(table)
    assert not features.is_general
    assert features.tables_for([("y", "1"), ("x", "1"), ("x", "2")]).tolist() == [2, 0, 1]
    with pytest.raises(InvalidArgumentError, match="no features for sequence 'y', time '2'"):
        features.tables_for([("y", "2")])


def test_tables_are_joined_by_place_and_time():
    still = TransitionFeatures.read(pairs()[:-2] + pairs()[-1:])
    windy = TransitionFeatures.read(
        [
            {"time": t, "from": i, "to": j, "wind": float(t) * (i < j)}
            for t in "12"
            for i in "ab"
            for j in "ab"
        ]
    )
    both = still.join(windy)
    assert both.names == ("near", "wind")
    first, second = both.tables_for([("1", "1"), ("1", "2")]).tolist()
    assert both.values[first, 0, 1].tolist() == [0.0, 1.0]
    assert both.values[second, 0, 1].tolist() == [0.0, 2.0]
    assert not both.possible[:, 1, 0].any()


def test_tables_of_other_places_or_times_are_not_joined():
    with pytest.raises(InvalidArgumentError, match="different places, such as 'c'"):
        staying(["a", "b"]).join(staying(["a", "b", "c"]))
    with pytest.raises(InvalidArgumentError, match="no time in common"):
        TransitionFeatures.read(pairs(time="1")).join(TransitionFeatures.read(pairs(time="2")))


def test_a_pair_twice_and_a_feature_that_is_not_finite_are_refused():
    with pytest.raises(DataFileError, match=r"record 5 \(from 'a', to 'a'\): record 1 has the same key"):
        TransitionFeatures.read([*pairs(), pairs()[0]])
    with pytest.raises(DataFileError, match=r"record 1: 'near' is empty.*must be a number"):
        TransitionFeatures.read([{"from": "a", "to": "a", "near": float("nan")}])
    with pytest.raises(DataFileError, match=r"record 1: 'near' is 1e\+308.*and 1e\+12"):
        TransitionFeatures.read([{"from": "a", "to": "a", "near": 1e308}])
    with pytest.raises(DataFileError, match=r"'near' is 'no', which is not a number. Write a number.$"):
        TransitionFeatures.read([{"from": "a", "to": "a", "near": "no"}])
    with pytest.raises(InvalidArgumentError, match="one is -inf: scale"):
        TransitionFeatures.of([[[-np.inf]]])
    with pytest.raises(DataFileError, match="no column of features"):
        TransitionFeatures.read([{"from": "a", "to": "a"}])


def test_distances_come_from_coordinates():
    places, distance = read_distances([{"place": "q", "x": 0, "y": 0}, {"place": "p", "x": 3, "y": 4}])
    assert places == ("p", "q")
    np.testing.assert_allclose(distance, [[0, 5], [5, 0]])


def test_distances_on_the_globe_are_in_kilometers():
    _, distance = read_distances(
        [{"place": "paris", "lat": 48.8566, "lon": 2.3522}, {"place": "rome", "lat": 41.9028, "lon": 12.4964}]
    )
    assert distance[0, 1] == pytest.approx(1105, rel=0.01)


def test_coordinates_that_are_missing_are_refused():
    with pytest.raises(DataFileError, match="neither the columns x and y nor lat and lon"):
        read_distances([{"place": "a", "x": 1}])
    with pytest.raises(DataFileError, match=r"place 'a'\): 'y' is empty. Write a number"):
        read_distances([{"place": "a", "x": 1, "y": None}, {"place": "b", "x": 1, "y": 2}])


@pytest.mark.parametrize(("axis", "given"), [("lat", 100.0), ("lon", 500.0), ("lon", -181.0)])
def test_coordinates_that_are_not_on_the_globe_are_refused(axis, given):
    with pytest.raises(DataFileError, match=rf"place 'a'\): '{axis}' is {given:g}. Write a number from -"):
        read_distances([{"place": "a", "lat": 0.0, "lon": 350.0, axis: given}])


def test_each_move_has_one_class_of_distance_or_stays():
    place = np.arange(10.0)
    features = by_distance(list("abcdefghij"), np.abs(place[:, None] - place), bins=4)
    np.testing.assert_array_equal(features.values.sum(axis=3), 1.0)
    np.testing.assert_array_equal(features.values[0, :, :, 0], np.eye(10))
    assert len(features.names) == 5
    assert features.values[0, 0, 1].argmax() < features.values[0, 0, 9].argmax()


def test_values_of_another_shape_are_refused():
    with pytest.raises(ShapeError, match=r"\(places, places, features\)"):
        TransitionFeatures.of(np.zeros((2, 3, 1)))
    with pytest.raises(ShapeError, match="for 2 places and 2 features"):
        TransitionFeatures.of(np.zeros((2, 2, 1)), names=("a", "b"))
