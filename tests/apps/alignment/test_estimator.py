"""`OntologyAligner` as scikit-learn's tools and its users use it."""

import inspect
import math
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import factorwise
from factorwise import OntologyAligner
from factorwise.apps.alignment.estimator import (
    KIND,
    Match,
    entities_of,
    reference_pairs,
    to_learn_from,
    with_sure_matches,
)
from factorwise.apps.alignment.matching import CROWDING, FORBIDDEN, ConceptPairs, best_matching
from factorwise.errors import InvalidArgumentError, ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.ontologies.alignments import Correspondence
from factorwise.io.ontologies.ontology import Concept, Ontology
from factorwise.learning.updates import PassiveAggressive, Unit
from factorwise.metrics.alignment import score_matches
from other_process import in_another_process

OURS = ("animal", "brown bear", "house cat", "sheep dog", "red fox", "sea eagle", "grey goose", "wild horse")
THEIRS = ("beast", "bear, brown", "cat", "sheepdog", "fox", "eagle of the sea", "goose", "tree", "stone")
KEPT = ("one_to_one", "search_steps", "random_state")


def ontology(prefix, labels):
    """Concepts below the first one."""
    return Ontology(
        tuple(
            Concept(f"{prefix}{n}", label, parents=(f"{prefix}0",) if n else ())
            for n, label in enumerate(labels)
        )
    )


LEFT, RIGHT = ontology("a", OURS), ontology("b", THEIRS)
REFERENCE = [(f"a{n}", f"b{n}") for n in range(1, 7)]
UNSEEN = (
    ontology("c", ("plant", "white oak", "garden rose", "water lily")),
    ontology("d", ("vegetation", "oak, white", "rose", "lily of the water", "gravel")),
)


def aligner(**parameters):
    """An aligner that learns the animals, and quickly."""
    return OntologyAligner(**{"passes": 3, "steps": 50, "search_steps": 60, **parameters})


@cache
def fitted(**parameters):
    return aligner(**parameters).fit(LEFT, RIGHT, REFERENCE)


def pairs_of(matches):
    return [(match.left, match.right) for match in matches]


# in the manner of scikit-learn


def test_the_estimator_is_a_public_name():
    assert factorwise.OntologyAligner is factorwise.alignment.OntologyAligner is OntologyAligner


def test_parameters_can_be_read_set_cloned_and_shown():
    model = OntologyAligner(cap=0.5, update=Unit(rate=2.0))
    twin = clone(model)
    assert twin is not model
    assert twin.get_params() == model.get_params()
    assert twin.set_params(cap=0.25, one_to_one=False) is twin
    assert (twin.cap, twin.one_to_one, model.cap) == (0.25, False, 0.5)
    assert repr(OntologyAligner(cap=0.5, complete=False)) == "OntologyAligner(cap=0.5, complete=False)"
    with pytest.raises(ValueError, match="no_such"):
        model.set_params(no_such=1)


def test_the_constructor_stores_what_it_is_given_and_nothing_else():
    for name, parameter in inspect.signature(OntologyAligner).parameters.items():
        marker = object()
        assert getattr(OntologyAligner(**{name: marker}), name) is marker
        assert getattr(OntologyAligner(), name) is parameter.default
    assert set(vars(OntologyAligner())) == set(OntologyAligner().get_params())


def test_fitting_returns_the_estimator_and_leaves_its_parameters_alone():
    model = aligner(passes=1, steps=5)
    before = model.get_params()
    assert model.fit(LEFT, RIGHT, iter(REFERENCE)) is model
    assert model.get_params() == before
    check_is_fitted(model)


@pytest.mark.parametrize("method", ["predict", "score", "weights_by_name", "save"])
def test_what_needs_weights_asks_for_them(method, tmp_path):
    arguments = {"weights_by_name": (), "save": (tmp_path / "m.fw",), "score": (LEFT, RIGHT, REFERENCE)}
    with pytest.raises(NotFittedError, match="call fit, or load a model"):
        getattr(OntologyAligner(), method)(*arguments.get(method, (LEFT, RIGHT)))
    assert list(tmp_path.iterdir()) == []


def test_a_model_survives_pickling():
    again = pickle.loads(pickle.dumps(fitted()))
    assert again.get_params() == fitted().get_params()
    assert again.predict(LEFT, RIGHT) == fitted().predict(LEFT, RIGHT)


# learning and matching


@pytest.mark.parametrize("one_to_one", [True, False])
@pytest.mark.parametrize("update", ["mira", "unit", "arow", PassiveAggressive(variant="PA-II", cap=0.1)])
def test_matches_that_can_be_learned_are_learned(update, one_to_one):
    model = fitted(update=update, one_to_one=one_to_one)
    assert model.score(LEFT, RIGHT, REFERENCE) == 1.0
    concepts = np.unique(ConceptPairs.of(LEFT, RIGHT).edges)
    assert [record.steps for record in model.history_] == [50 * len(concepts)] * 3


@pytest.mark.parametrize("one_to_one", [True, False])
def test_what_was_learned_serves_for_other_ontologies(one_to_one):
    found = fitted(one_to_one=one_to_one).predict(*UNSEEN)
    assert sorted(pairs_of(found)) == [("c1", "d1"), ("c2", "d2"), ("c3", "d3")]


def test_the_score_is_the_f1_of_the_matches():
    model = fitted()
    other = [*REFERENCE[:3], ("a0", "b0"), ("a7", "b8")]
    expected = score_matches(other, pairs_of(model.predict(LEFT, RIGHT))).f1
    assert model.score(LEFT, RIGHT, other) == expected == pytest.approx(2 * 3 / (6 + 5))


@pytest.mark.parametrize("one_to_one", [True, False])
def test_confidences_are_probabilities_and_the_surest_match_comes_first(one_to_one):
    found = fitted(one_to_one=one_to_one).predict(LEFT, RIGHT)
    sure = [match.confidence for match in found]
    assert sure == sorted(sure, reverse=True)
    assert all(0.0 < confidence < 1.0 for confidence in sure)
    assert all(type(confidence) is float for confidence in sure)
    assert isinstance(found[0], Match)


@pytest.mark.parametrize("update", ["mira", "unit"])
def test_a_higher_score_is_a_higher_confidence(update):
    model = fitted(update=update)
    slope, intercept = model.calibration_
    assert slope > 0.0
    candidates = ConceptPairs.of(LEFT, RIGHT)
    scores = candidates.features @ model.weights_[: len(candidates.names)]
    names = list(LEFT.by_id), [None] * candidates.n_left + list(RIGHT.by_id)
    by_pair = {
        (names[0][a], names[1][b]): score
        for (a, b), score in zip(candidates.edges.tolist(), scores.tolist(), strict=True)
    }
    found = model.predict(LEFT, RIGHT)
    falling = [by_pair[pair] for pair in pairs_of(found)]
    assert falling == sorted(falling, reverse=True)
    np.testing.assert_allclose(
        [match.confidence for match in found], expit(slope * np.array(falling) + intercept)
    )
    chosen = best_matching(candidates, scores)
    assert len(chosen) == len(found)


def test_confidences_tell_right_pairs_from_wrong_ones():
    """Over all candidate pairs, not only those that are matched."""
    model = fitted()
    candidates = ConceptPairs.of(LEFT, RIGHT)
    slope, intercept = model.calibration_
    sure = expit(slope * (candidates.features @ model.weights_[: len(candidates.names)]) + intercept)
    right = candidates.edges[:, 1] - candidates.n_left == candidates.edges[:, 0]
    assert sure[right].min() > sure[~right].max()


def test_where_every_candidate_is_right_confidences_need_no_fit():
    heart = ontology("a", ("heart",)), ontology("b", ("heart",))
    model = aligner(passes=1).fit(*heart, [("a0", "b0")])
    assert model.calibration_ == (1.0, 0.0)
    assert pairs_of(model.predict(*heart)) == [("a0", "b0")]


def random_weights(model, seed):
    """The model with random weights in place of those learned."""
    changed = pickle.loads(pickle.dumps(model))
    free = len(changed.weights_) - 2
    changed.weights_[:free] = np.random.default_rng(seed).normal(size=free)
    return changed


@pytest.mark.parametrize("seed", range(5))
def test_one_to_one_never_matches_a_concept_twice(seed):
    left = ontology("a", ("lip", "upper lip", "lower lip", "inner lip", "lip of the cup"))
    right = ontology("b", ("lip", "lip, upper", "lip, lower", "lip, inner"))
    found = random_weights(fitted(), seed).predict(left, right)
    assert found
    for side in zip(*pairs_of(found), strict=True):
        assert len(set(side)) == len(side)


def test_many_to_many_may_match_a_concept_twice_and_learns_the_price():
    left = ontology("a", ("body", "brown bear", "bear, brown", "red fox", "house cat"))
    right = ontology("b", ("corpus", "brown bear", "fox", "cat"))
    reference = [("a1", "b1"), ("a2", "b1"), ("a3", "b2"), ("a4", "b3")]
    model = aligner(one_to_one=False).fit(left, right, reference)
    assert model.score(left, right, reference) == 1.0
    price = {name: weight for name, weight in model.weights_by_name().items() if CROWDING in name}
    assert len(price) == 2
    assert all(weight != FORBIDDEN for weight in price.values())
    strict = aligner().fit(left, right, reference)
    assert len(strict.predict(left, right)) == 3


def test_what_is_forbidden_stays_so_and_is_not_listed():
    model = fitted()
    assert model.weights_[-2:].tolist() == [FORBIDDEN, FORBIDDEN]
    assert all(CROWDING in name for name in model.weight_names_[-2:])
    listed = model.weights_by_name()
    assert listed == dict(zip(model.weight_names_[:-2], model.weights_[:-2].tolist(), strict=True))
    sizes = [abs(weight) for weight in listed.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 0.0
    free = fitted(one_to_one=False)
    assert set(free.weights_by_name()) == set(free.weight_names_)


@pytest.mark.parametrize("one_to_one", [True, False])
def test_ontologies_with_nothing_in_common_have_no_match(one_to_one):
    strangers = ontology("x", ("zebra", "quartz")), ontology("y", ("umbrella", "fjord"))
    assert fitted(one_to_one=one_to_one).predict(*strangers) == []


def test_a_callback_sees_every_pass_and_can_end_the_learning():
    seen = []

    def enough(record, weights):
        seen.append(weights.copy())
        return len(seen) == 2

    model = aligner(passes=5).fit(LEFT, RIGHT, REFERENCE, callback=enough)
    assert len(model.history_) == 2
    np.testing.assert_array_equal(seen[-1], model.weights_)


# what the reference says


def test_concepts_that_match_through_others_are_one_entity():
    reference = [("a1", "b1"), ("a2", "b1"), ("a2", "b3"), ("a4", "b4")]
    entity = entities_of(LEFT, RIGHT, reference)
    assert len(entity) == len(OURS) + len(THEIRS)
    chain = [1, 2, len(OURS) + 1, len(OURS) + 3]
    assert len(set(entity[chain])) == 1
    assert entity[4] == entity[len(OURS) + 4] not in (-1, entity[1])
    named = {*chain, 4, len(OURS) + 4}
    assert all((entity[k] == -1) == (k not in named) for k in range(len(entity)))


def test_a_match_that_is_given_twice_counts_once():
    once, twice = (entities_of(LEFT, RIGHT, reference) for reference in (REFERENCE, REFERENCE * 2))
    assert once.tolist() == twice.tolist()
    assert aligner().fit(LEFT, RIGHT, REFERENCE * 2).weights_.tobytes() == fitted().weights_.tobytes()


def hand_made(features):
    """Two concepts on the left, three on the right; the reference names the first of each side."""
    edges = np.array([(0, 2), (0, 3), (1, 2), (1, 3), (1, 4)])
    return ConceptPairs(2, 3, edges, np.array(features, dtype=np.float64).reshape(-1, 1), ("f",))


def test_a_part_of_the_matches_says_nothing_about_pairs_that_it_does_not_name():
    entity = np.array([0, -1, 0, -1, -1])
    kept, labels = to_learn_from(hand_made([1, 2, 3, 4, 5]), entity, complete=False)
    assert kept.features[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert (kept.n_left, kept.n_right) == (2, 2)
    assert kept.edges.tolist() == [[0, 2], [0, 3], [1, 2]]
    assert labels[0] == labels[2]
    assert len(set(labels.tolist())) == 3
    assert (labels >= 0).all()


def test_all_of_the_matches_say_that_concepts_not_named_have_none():
    entity = np.array([0, -1, 0, -1, -1])
    kept, labels = to_learn_from(hand_made([1, 2, 3, 4, 5]), entity, complete=True)
    assert kept.edges.tolist() == hand_made([0] * 5).edges.tolist()
    assert labels[0] == labels[2]
    assert len(set(labels.tolist())) == 4
    assert entity.tolist() == [0, -1, 0, -1, -1]


def test_matches_that_the_reference_leaves_out_are_found_if_it_is_said_to_be_a_part():
    """Half of the matches are named. Taken for all of them, they teach that the others are wrong."""
    half = REFERENCE[::2]
    part = aligner(complete=False).fit(LEFT, RIGHT, half)
    whole = aligner(complete=True).fit(LEFT, RIGHT, half)
    assert part.score(LEFT, RIGHT, REFERENCE) == 1.0
    assert whole.score(LEFT, RIGHT, REFERENCE) < 0.9
    assert whole.score(LEFT, RIGHT, half) > part.score(LEFT, RIGHT, half)


REFERENCES = [
    ([], "the reference holds no match: there is nothing to learn from"),
    ([("a1", "b77")], "'b77', which the ontology on the right does not have"),
    ([("b1", "a1")], r"'b1', .* on the left .*: check that the ontologies are given in the order"),
    ([("a1", "b1", 0.9)], "which is no pair: give the ids of a left and a right concept"),
    (["ab"], "which is no pair: give the ids of a left and a right concept"),
    ([("a0", "b8")], "no pair of the reference is among the candidate pairs"),
]


def test_files_in_place_of_what_they_hold_are_refused(tmp_path):
    side = Ontology((Concept("a", "cat"),))
    aligner = OntologyAligner()
    for wrong in ("a.owl", tmp_path):
        with pytest.raises(InvalidArgumentError, match="must be of type Ontology"):
            aligner.fit(wrong, side, [("a", "a")])
        with pytest.raises(InvalidArgumentError, match=r"an Ontology is needed.*read_ontology"):
            aligner.fit_pairs([(wrong, side, [("a", "a")])])
        with pytest.raises(InvalidArgumentError, match="Ontology"):
            aligner.fit_unlabelled(side, wrong)
        with pytest.raises(InvalidArgumentError, match=r"list of known matches.*read_alignment"):
            aligner.fit_pairs([(side, side, wrong)])


def test_a_reference_may_be_what_was_read_from_a_file():
    rows = [Correspondence("a", "b"), Correspondence("c", "d", "<"), ("e", "f")]
    assert reference_pairs(rows) == [("a", "b"), ("e", "f")]


def test_sure_matches_join_a_reference_that_is_known_in_part():
    candidates = ConceptPairs(
        2, 2, np.array([[0, 2], [0, 3], [1, 2], [1, 3]]), np.array([[9.0], [0.0], [0.0], [9.0]]), ("x",)
    )
    entity = with_sure_matches(candidates, np.ones(1), np.array([-1, 1, -1, 1]))
    assert entity[0] == entity[2] > 3
    assert entity[[1, 3]].tolist() == [1, 1]
    assert with_sure_matches(candidates, np.zeros(1), entity).tolist() == entity.tolist()


@pytest.mark.parametrize(("reference", "fault"), REFERENCES, ids=[repr(given) for given, _ in REFERENCES])
def test_a_reference_that_nothing_can_be_learned_from_is_refused(reference, fault):
    model = aligner()
    with pytest.raises(InvalidArgumentError, match=fault):
        model.fit(LEFT, RIGHT, reference)
    assert not hasattr(model, "weights_")


# the same seed, the same bits


@pytest.mark.parametrize("one_to_one", [True, False])
def test_the_seed_decides(one_to_one):
    first, again, other = (
        aligner(one_to_one=one_to_one, random_state=seed, general={}).fit(LEFT, RIGHT, REFERENCE)
        for seed in (0, 0, 1)
    )
    assert again.weights_.tobytes() == first.weights_.tobytes()
    assert again.history_ == first.history_
    assert again.predict(*UNSEEN) == first.predict(*UNSEEN)
    assert other.weights_.tobytes() != first.weights_.tobytes()


IN_ANOTHER_PROCESS = """
from test_estimator import LEFT, REFERENCE, RIGHT, UNSEEN, aligner

model = aligner().fit(LEFT, RIGHT, REFERENCE)
print(model.weights_.tobytes().hex(), model.calibration_, model.predict(*UNSEEN))
"""


def test_a_process_with_other_threads_and_hashes_finds_the_same():
    """Sets of words are looked at in another order there."""
    place = Path(__file__).parent
    there = in_another_process(IN_ANOTHER_PROCESS, place, place.parents[1])
    model = fitted()
    expected = f"{model.weights_.tobytes().hex()} {model.calibration_} {model.predict(*UNSEEN)}"
    assert there == expected


# model files


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"one_to_one": False, "search_steps": np.int64(30), "random_state": np.int64(4)},
        {"update": Unit(rate=0.5), "accept": "always", "cap": np.float64(0.5), "passes": np.int64(2)},
    ],
    ids=repr,
)
def test_a_saved_model_comes_back_as_it_was(tmp_path, parameters):
    model = fitted(**parameters)
    model.save(tmp_path / "m.fw")
    again = OntologyAligner.load(tmp_path / "m.fw")
    assert again.weights_.tobytes() == model.weights_.tobytes()
    assert again.weight_names_ == model.weight_names_
    assert again.settings_ == model.settings_
    assert again.history_ == model.history_
    assert again.calibration_ == model.calibration_
    assert again.predict(*UNSEEN) == model.predict(*UNSEEN)
    assert {name: getattr(again, name) for name in KEPT} == {name: getattr(model, name) for name in KEPT}
    again.save(tmp_path / "again.fw")
    assert read_model(tmp_path / "again.fw").metadata == read_model(tmp_path / "m.fw").metadata


def test_a_saved_model_says_how_it_was_learned(tmp_path):
    fitted(cap=np.float64(0.5), steps=np.int64(20), random_state=2).save(tmp_path / "m.fw")
    saved = read_model(tmp_path / "m.fw", KIND)
    assert saved.provenance["seed"] == 2
    assert saved.provenance["configuration"] == saved.metadata["settings"]
    learning = saved.metadata["settings"]["learning"]
    assert learning["update"] == PassiveAggressive(cap=0.5).as_dict()
    assert (learning["passes"], learning["steps"], learning["complete"]) == (3, 20, True)


def test_settings_can_be_replaced_when_a_model_is_loaded(tmp_path):
    fitted().save(tmp_path / "m.fw")
    model = OntologyAligner.load(tmp_path / "m.fw", one_to_one=False, search_steps=9, random_state=3)
    assert (model.one_to_one, model.search_steps, model.random_state) == (False, 9, 3)


def changed_settings(settings, **changes):
    return {name: value for name, value in (settings | changes).items() if value is not None}


@pytest.mark.parametrize(
    "changes",
    [
        {"calibration": None},
        {"calibration": 1.0},
        {"calibration": [1.0]},
        {"calibration": [1.0, 0.0, 0.0]},
        {"calibration": ["steep", "low"]},
        {"calibration": [[1.0], 0.0]},
        {"one_to_one": None},
        {"search_steps": None},
        {"random_state": None},
    ],
    ids=repr,
)
def test_damaged_settings_are_refused_with_the_remedy(tmp_path, changes):
    path = tmp_path / "m.fw"
    fitted().save(path)
    saved = read_model(path)
    metadata = dict(saved.metadata)
    metadata["settings"] = changed_settings(metadata["settings"], **changes)
    write_model(path, ModelFile(kind=KIND, metadata=metadata, arrays=saved.arrays))
    with pytest.raises(ModelFileError, match=r"m\.fw: .* restore it from a copy, or train again"):
        OntologyAligner.load(path)


def test_a_model_of_another_version_with_other_features_is_refused(tmp_path):
    path = tmp_path / "m.fw"
    fitted().save(path)
    saved = read_model(path)
    names = ["matches: something of old", *saved.metadata["names"][1:]]
    metadata = {**saved.metadata, "names": names}
    write_model(path, ModelFile(kind=KIND, metadata=metadata, arrays=saved.arrays))
    with pytest.raises(InvalidArgumentError, match=r"features .* differ .*: train it again"):
        OntologyAligner.load(path).predict(LEFT, RIGHT)


def test_files_that_are_none_of_its_own_are_refused(tmp_path):
    fitted().save(tmp_path / "m.fw")
    with pytest.raises(ModelFileError, match=r"'coreference'.*OntologyAligner\.load"):
        factorwise.CoreferenceResolver.load(tmp_path / "m.fw")
    with pytest.raises(ModelFileError, match=r"none\.fw: no such file"):
        OntologyAligner.load(tmp_path / "none.fw")


# what is refused

REFUSED = [
    ({"update": "mirra"}, "Did you mean 'mira'"),
    ({"cap": 0.0}, "cap must be a finite number greater than zero"),
    ({"cap": math.inf}, "cap must be a finite number greater than zero"),
    ({"accept": "never"}, "accept must be one of"),
    ({"metric": "muc"}, "metric must be one of"),
    ({"passes": 0}, "passes must be at least 1"),
    ({"steps": 0}, "steps must be at least 1"),
    ({"random_state": -1}, "random_state must be a whole number from 0 on"),
    ({"random_state": 0.5}, "random_state must be a whole number from 0 on"),
]


@pytest.mark.parametrize(("parameters", "remedy"), REFUSED, ids=[repr(given) for given, _ in REFUSED])
def test_parameters_that_make_no_sense_are_refused_when_fitting(parameters, remedy):
    model = aligner(**parameters)
    with pytest.raises(InvalidArgumentError, match=remedy):
        model.fit(LEFT, RIGHT, REFERENCE)
    assert not hasattr(model, "weights_")


def test_no_search_steps_are_refused_where_a_search_is_needed():
    model = pickle.loads(pickle.dumps(fitted(one_to_one=False))).set_params(search_steps=0)
    with pytest.raises(InvalidArgumentError, match="search_steps must be at least 1"):
        model.predict(LEFT, RIGHT)
