"""`CollectiveModel`: fitting, predicting, scoring, saving."""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import factorwise
from factorwise.apps.collective import Counts, TransitionFeatures
from factorwise.apps.collective.estimator import CollectiveModel
from factorwise.errors import CountsError, DataFileError, InvalidArgumentError, ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model

RING = np.array([[0.7, 0.3, 0.0], [0.0, 0.7, 0.3], [0.3, 0.0, 0.7]])
PLACES = ("a", "b", "c")


def task(sequences=4, times=5, population=300, seed=0):
    """Counts and true flows of members that stay or go on to the next place of a ring."""
    rng = np.random.default_rng(seed)
    counts, flows = [], []
    for sequence in range(sequences):
        here = rng.multinomial(population, [0.8, 0.1, 0.1])
        for time in range(times):
            counts += [
                {"sequence": sequence, "time": time, "place": place, "count": int(n)}
                for place, n in zip(PLACES, here, strict=True)
            ]
            if time == times - 1:
                break
            moved = np.array([rng.multinomial(n, row) for n, row in zip(here, RING, strict=True)])
            flows += [
                {"sequence": sequence, "time": time, "from": PLACES[i], "to": PLACES[j], "count": int(n)}
                for (i, j), n in np.ndenumerate(moved)
            ]
            here = moved.sum(axis=0)
    return counts, flows


COUNTS, FLOWS = task()
FEATURES = [
    {"from": i, "to": j, "stay": float(i == j), "onward": float((i + j) in ("ab", "bc", "ca"))}
    for i in PLACES
    for j in PLACES
]


@cache
def fitted():
    return CollectiveModel(noise="exact", passes=30).fit(COUNTS, features=FEATURES)


def test_it_is_a_name_of_the_package():
    assert factorwise.CollectiveModel is CollectiveModel


def test_flows_with_learned_weights_are_near_the_true_ones():
    model = fitted()
    assert model.weights_by_name().keys() == {"stay", "onward"}
    assert model.score(COUNTS, FLOWS) > 0.9
    assert model.score(COUNTS, FLOWS) > CollectiveModel(noise="exact", passes=1).fit(COUNTS).score(
        COUNTS, FLOWS
    )


def test_without_features_it_learns_whether_members_stay():
    model = CollectiveModel(passes=3).fit(COUNTS)
    assert model.feature_names_ == ("stay",)
    assert model.places_ == PLACES


def test_with_coordinates_it_learns_classes_of_distance():
    where = [{"place": place, "x": x, "y": 0} for place, x in zip(PLACES, (0, 1, 5), strict=True)]
    model = CollectiveModel(passes=3).fit(COUNTS, coordinates=where)
    assert model.feature_names_[0] == "stay"
    both = CollectiveModel(passes=3).fit(COUNTS, coordinates=where, features=FEATURES)
    assert both.feature_names_ == (*model.feature_names_, "stay", "onward")


def test_flows_as_a_table_have_time_from_to_and_expected():
    flows = fitted().predict(COUNTS)
    table = flows.table(least=0.0)
    assert table.column_names == ["sequence", "time", "from", "to", "expected"]
    assert table.num_rows == 4 * 4 * 9
    assert np.sum(table.column("expected").to_numpy()) == pytest.approx(4 * 4 * 300)
    alone = fitted().predict([row for row in COUNTS if row["sequence"] == 1])
    assert alone.table().column_names == ["time", "from", "to", "expected"]


def test_missing_counts_are_filled_in():
    known = [row for row in COUNTS if (row["time"], row["place"]) != (2, "b")]
    flows = CollectiveModel(population=300).fit(known, features=FEATURES).predict(known)
    true = [row["count"] for row in COUNTS if (row["time"], row["place"]) == (2, "b")]
    found = [series.counts[2, 1] for series in flows.series]
    np.testing.assert_allclose(found, true, atol=40)


def test_a_population_for_each_sequence_is_used():
    flows = CollectiveModel(population={"0": 1000.0}, passes=2).fit(COUNTS).predict(COUNTS)
    assert [series.population for series in flows.series] == [1000, 300, 300, 300]


def test_a_model_from_a_file_predicts_as_before(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.fw")
    again = CollectiveModel.load(tmp_path / "m.fw")
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    for ours, theirs in zip(model.predict(COUNTS).series, again.predict(COUNTS).series, strict=True):
        np.testing.assert_array_equal(ours.expected, theirs.expected)


def test_a_model_with_features_by_time_keeps_them(tmp_path):
    timed = [{"time": t, **row} for t in range(4) for row in FEATURES]
    model = CollectiveModel(passes=2).fit(COUNTS, features=timed)
    model.save(tmp_path / "m.fw")
    assert len(CollectiveModel.load(tmp_path / "m.fw").predict(COUNTS)) == 4


def test_features_of_sequences_must_be_given_again(tmp_path):
    own = [{"sequence": s, **row} for s in range(4) for row in FEATURES]
    model = CollectiveModel(passes=2).fit(COUNTS, features=own)
    model.save(tmp_path / "m.fw")
    again = CollectiveModel.load(tmp_path / "m.fw")
    with pytest.raises(InvalidArgumentError, match="give the features of these counts"):
        again.predict(COUNTS)
    assert len(again.predict(COUNTS, features=own)) == 4


def test_weights_of_known_flows_are_those_of_highest_likelihood(tmp_path):
    some = [row for row in FLOWS if row["sequence"] in (0, 2)]
    model = CollectiveModel(noise="exact", l2=0.0).fit(COUNTS, features=FEATURES, flows=some)
    stayed = sum(row["count"] for row in some if row["from"] == row["to"])
    onward = sum(row["count"] for row in some if row["from"] != row["to"])
    stay, go = (model.weights_by_name()[name] for name in ("stay", "onward"))
    assert stay - go == pytest.approx(np.log(stayed / onward), abs=1e-2)
    assert model.history_ == []
    model.save(tmp_path / "m.fw")
    assert CollectiveModel.load(tmp_path / "m.fw").score(COUNTS, FLOWS) > 0.9


def test_damaged_and_foreign_model_files_are_refused(tmp_path):
    fitted().save(tmp_path / "m.fw")
    good = read_model(tmp_path / "m.fw")
    broken = {**good.arrays, "weights": np.zeros(7)}
    write_model(tmp_path / "b.fw", ModelFile(kind=good.kind, metadata=good.metadata, arrays=broken))
    with pytest.raises(ModelFileError, match="do not fit together"):
        CollectiveModel.load(tmp_path / "b.fw")
    write_model(tmp_path / "o.fw", ModelFile(kind="weights"))
    with pytest.raises(ModelFileError, match="'collective' is needed"):
        CollectiveModel.load(tmp_path / "o.fw")


def test_places_and_features_must_be_those_of_the_model():
    model = fitted()
    with pytest.raises(CountsError, match=r"record 1 .*place 'z' is not among the 3 known places"):
        model.predict([{"time": 0, "place": "z", "count": 1}])
    with pytest.raises(InvalidArgumentError, match="Give the same places and features"):
        model.predict(COUNTS, features=[{**row, "more": 1} for row in FEATURES])
    with pytest.raises(CountsError, match="not among the 3 known places"):
        model.predict(Counts.of([[1, 2]], places=("a", "z")))


def test_true_flows_must_belong_to_the_counts():
    with pytest.raises(DataFileError, match="no step at time '9'"):
        fitted().score(COUNTS, [{**FLOWS[0], "time": 9}])
    with pytest.raises(DataFileError, match=r"-1.*at least zero"):
        fitted().score(COUNTS, [{**FLOWS[0], "count": -1}])
    with pytest.raises(DataFileError, match=r"neither a column 'expected' nor 'count'.*Rename"):
        fitted().score(COUNTS, [{"time": 0, "from": "a", "to": "b", "n": 1}])


def test_it_is_cloned_unfitted_and_refuses_to_predict():
    with pytest.raises(NotFittedError, match=r"call fit\(counts\)"):
        clone(fitted()).predict(COUNTS)


def test_settings_outside_their_range_are_refused():
    with pytest.raises(InvalidArgumentError, match="passes"):
        CollectiveModel(passes=0).fit(COUNTS)
    with pytest.raises(InvalidArgumentError, match="l2"):
        CollectiveModel(l2=-1).fit(COUNTS)


def test_a_saved_rate_is_dropped_with_another_noise(tmp_path):
    CollectiveModel(rate=0.5, passes=1).fit(COUNTS).save(tmp_path / "m.fw")
    assert CollectiveModel.load(tmp_path / "m.fw").rate == 0.5
    other = CollectiveModel.load(tmp_path / "m.fw", noise="gaussian", variance=2.0)
    assert (other.rate, other.variance) == (None, 2.0)
    with pytest.raises(InvalidArgumentError, match="is a parameter of poisson noise"):
        CollectiveModel.load(tmp_path / "m.fw", noise="gaussian", rate=2.0).predict(COUNTS)


def test_a_tree_of_times_is_fitted():
    rows = [{"time": t, "place": p, "count": n} for t in "xyz" for p, n in zip("ab", (30, 70), strict=True)]
    flows = CollectiveModel(parents={"y": "x", "z": "x"}, passes=3).fit(rows).predict(rows)
    assert flows[0].steps == ("y", "z")


def test_arrays_do_as_well_as_tables():
    features = TransitionFeatures.of(np.eye(2)[:, :, None])
    model = CollectiveModel(passes=2).fit(Counts.of([[10, 20], [15, 15]]), features=features)
    assert model.predict(Counts.of([[10, 20], [15, 15]]))[0].expected.shape == (1, 2, 2)
