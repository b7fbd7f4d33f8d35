"""`CoreferenceResolver` as scikit-learn's tools and its users use it."""

import inspect
import math
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

import factorwise
from coreference_cases import record
from factorwise import CoreferenceResolver
from factorwise.apps.coreference.documents import document_from
from factorwise.apps.coreference.estimator import KIND
from factorwise.apps.coreference.ranking import AntecedentRanker
from factorwise.errors import DataFileError, EmptyWorldError, InvalidArgumentError, ModelFileError
from factorwise.io.models.files import read_model
from factorwise.learning.updates import PassiveAggressive, Unit
from factorwise.metrics.coreference import score_documents
from other_process import in_another_process

NAMES = ("Ann Lee", "Bob Ray", "Eve Fox", "Max Orr")
KEPT = ("scope", "types", "without_types", "aggregates", "search_steps", "random_state")
TWO_EACH = [0, 1, 2, 1, 0, 2]


def story(number, one, two):
    """A document in which two people and a town are named twice, in a topic of two documents."""
    text = (
        f"< {one} >PER/NAM/{one[:3]} met < {two} >PER/NAM/{two[:3]} in < Rome >LOC/NAM/Rome ."
        f" < {two} >PER/NAM/{two[:3]} likes < {one} >PER/NAM/{one[:3]} . < Rome >LOC/NAM/Rome is old ."
    )
    return record(text, id=f"d{number}", topic=number // 2)


STORIES = [story(number, NAMES[number % 4], NAMES[(number + 1) % 4]) for number in range(4)]
UNSEEN = [story(8, "Tom Hay", "Sue Kim"), story(9, "Sue Kim", "Joe Dix")]


def resolver(**parameters):
    """A resolver that learns the stories, and quickly."""
    return CoreferenceResolver(**{"passes": 2, "steps": 300, "search_steps": 100, **parameters})


@cache
def fitted(**parameters):
    return resolver(**parameters).fit(STORIES)


@cache
def rough(**parameters):
    """A resolver with random weights, which is often wrong."""
    model = pickle.loads(pickle.dumps(fitted(**parameters)))
    rng = np.random.default_rng(0)
    model.weights_ = rng.normal(size=len(model.weights_))
    plain, hashed = (rng.normal(size=given.shape) for given in model.ranker_[1:])
    model.ranker_ = model.ranker_._replace(plain=plain, hashed=hashed)
    return model


def with_mentions(document, change):
    return document | {"mentions": [change(mention) for mention in document["mentions"]]}


def without_entities(documents):
    return [
        with_mentions(one, lambda m: {key: value for key, value in m.items() if key != "entity"})
        for one in documents
    ]


# in the manner of scikit-learn


def test_the_estimator_is_a_public_name():
    assert factorwise.CoreferenceResolver is factorwise.coreference.CoreferenceResolver is CoreferenceResolver


def test_parameters_can_be_read_set_cloned_and_shown():
    model = CoreferenceResolver(cap=0.5, types=["PER"], update=Unit(rate=2.0))
    twin = clone(model)
    assert twin is not model
    assert twin.get_params() == model.get_params()
    assert twin.set_params(cap=0.25, scope="topic") is twin
    assert (twin.cap, twin.scope, model.cap) == (0.25, "topic", 0.5)
    assert repr(CoreferenceResolver(cap=0.5, scope="topic")) == "CoreferenceResolver(cap=0.5, scope='topic')"
    with pytest.raises(ValueError, match="no_such"):
        model.set_params(no_such=1)


def test_the_constructor_stores_what_it_is_given_and_nothing_else():
    for name, parameter in inspect.signature(CoreferenceResolver).parameters.items():
        marker = object()
        assert getattr(CoreferenceResolver(**{name: marker}), name) is marker
        assert getattr(CoreferenceResolver(), name) is parameter.default
    assert set(vars(CoreferenceResolver())) == set(CoreferenceResolver().get_params())


def test_fitting_returns_the_estimator_and_leaves_its_parameters_alone():
    model = resolver(types=("PER", "LOC"), without_types={"ORG"}, passes=1, steps=20)
    before = model.get_params()
    assert model.fit(STORIES) is model
    assert model.get_params() == before
    check_is_fitted(model)


@pytest.mark.parametrize("method", ["predict", "score", "scores", "weights_by_name", "save"])
def test_what_needs_weights_asks_for_them(method, tmp_path):
    arguments = {"weights_by_name": (), "save": (tmp_path / "m.fw",)}.get(method, (STORIES,))
    with pytest.raises(NotFittedError, match="call fit, or load a model"):
        getattr(CoreferenceResolver(), method)(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_grid_search_keeps_a_model_that_can_be_saved(tmp_path):
    """Numbers of a grid come from NumPy."""
    grid = {"search_steps": np.array([100]), "cap": np.array([0.01]), "steps": np.array([1, 300])}
    search = GridSearchCV(resolver(n_jobs=1, passes=1), grid, cv=2, error_score="raise").fit(STORIES)
    assert search.best_params_["cap"] == 0.01
    assert search.best_score_ > 0.9
    search.best_estimator_.save(tmp_path / "m.fw")
    assert CoreferenceResolver.load(tmp_path / "m.fw").predict(UNSEEN) == search.predict(UNSEEN)


def test_a_model_survives_pickling():
    again = pickle.loads(pickle.dumps(fitted()))
    assert again.get_params() == fitted().get_params()
    assert again.predict(UNSEEN) == fitted().predict(UNSEEN)


# learning and predicting


@pytest.mark.parametrize("scope", ["document", "topic"])
@pytest.mark.parametrize("update", ["mira", "unit", PassiveAggressive(variant="PA-II", cap=0.1)])
def test_documents_that_can_be_learned_are_learned(scope, update):
    model = fitted(scope=scope, update=update)
    assert model.score(STORIES) == 1.0
    assert len(model.history_) == 2
    assert model.history_[0].steps == 300 * (4 if scope == "document" else 2)


@pytest.mark.parametrize("scope", ["document", "topic"])
def test_what_was_learned_serves_for_other_names(scope):
    assert fitted(scope=scope).score(UNSEEN) == 1.0


def test_documents_by_themselves_share_no_number():
    assert fitted().predict(STORIES) == [[first + k for k in TWO_EACH] for first in (0, 3, 6, 9)]


def test_documents_of_a_topic_share_numbers_and_topics_do_not():
    found = fitted(scope="topic").predict([UNSEEN[0], STORIES[0], UNSEEN[1]])
    assert found == [[0, 1, 2, 1, 0, 2], [4, 5, 6, 5, 4, 6], [1, 3, 2, 3, 1, 2]]


def test_what_is_found_in_a_document_does_not_depend_on_the_others():
    model = rough()
    together = model.predict(STORIES)
    for document, found in zip(STORIES, together, strict=True):
        (alone,) = model.predict([document])
        assert [label - min(found) for label in found] == alone


def test_numbers_stand_where_the_mentions_stand_in_the_record():
    order = [4, 0, 5, 2, 1, 3]
    mixed = STORIES[0] | {"mentions": [STORIES[0]["mentions"][k] for k in order]}
    assert fitted().predict([mixed]) == [[TWO_EACH[k] for k in order]]
    assert fitted().score([mixed]) == 1.0


def test_records_and_documents_are_taken_alike():
    documents = [document_from(one) for one in STORIES]
    model = resolver().fit(documents)
    assert model.weights_.tobytes() == fitted().weights_.tobytes()
    mixture = [STORIES[0], documents[1]]
    assert model.predict(documents[:2]) == model.predict(mixture) == fitted().predict(iter(STORIES[:2]))
    assert model.score(mixture) == 1.0


@pytest.mark.parametrize("given", [STORIES[0], document_from(STORIES[0])], ids=["record", "document"])
def test_a_document_that_is_given_twice_is_answered_twice(given):
    first, second = fitted().predict([given, given])
    assert (first, second) == (TWO_EACH, [3 + label for label in TWO_EACH])
    first, second = fitted(scope="topic").predict([given, given])
    assert first == second == TWO_EACH


def test_mentions_that_are_left_out_have_no_entity():
    of_people = fitted(types=("PER",)).predict(STORIES[:1])
    assert of_people == fitted(without_types=("LOC",)).predict(STORIES[:1]) == [[0, 1, None, 1, 0, None]]
    until = STORIES[0] | {"full_until": 9}
    assert fitted().predict([until]) == [[0, 1, 2, 1, None, None]]


def test_left_out_mentions_need_no_entity_and_teach_nothing():
    stripped = [
        with_mentions(one, lambda m: m | ({"entity": None} if m["type"] == "LOC" else {})) for one in STORIES
    ]
    model = resolver(without_types=("LOC",)).fit(stripped)
    assert model.weights_.tobytes() == fitted(without_types=("LOC",)).weights_.tobytes()
    assert model.scores(stripped).items == 16


def test_documents_without_mentions_have_no_answers_among_others():
    empty = record("it rains .", id="empty", topic=0)
    assert fitted().predict([empty, STORIES[0], empty]) == [[], TWO_EACH, []]
    model = resolver().fit([empty, *STORIES])
    assert model.weights_.tobytes() == fitted().weights_.tobytes()


def test_where_no_document_has_a_mention_this_is_said():
    for nothing in ([], [record("it rains .")]):
        for call in (fitted().predict, fitted().score, resolver().fit):
            with pytest.raises(
                EmptyWorldError, match="check the documents, their 'full_until' and the types"
            ):
                call(nothing)


def test_a_document_with_one_mention_teaches_nothing_and_has_one_entity():
    single = record("< Ann Lee >PER/NAM/Ann sleeps .", id="single", topic=0)
    assert fitted().predict([single, STORIES[0], single]) == [[0], [1 + k for k in TWO_EACH], [4]]
    assert resolver().fit([single, *STORIES]).weights_.tobytes() == fitted().weights_.tobytes()
    alone = resolver(passes=1, steps=5).fit([single])
    assert not alone.weights_.any()
    assert alone.predict([single, single]) == [[0], [1]]
    assert alone.score([single]) == 1.0


def test_the_truth_is_not_looked_at_when_entities_are_predicted():
    found = fitted().predict(without_entities(UNSEEN))
    assert found == fitted().predict(UNSEEN)
    assert found == fitted().predict([with_mentions(one, lambda m: m | {"entity": 0}) for one in UNSEEN])


def test_a_mention_without_an_entity_cannot_be_learned_from_or_scored():
    for call in (resolver().fit, fitted().score, fitted().scores):
        with pytest.raises(
            DataFileError, match=r"d0: mention 0 has no 'entity'.*add the key to every mention"
        ):
            call(without_entities(STORIES))


@pytest.mark.parametrize("parameters", [{}, {"scope": "topic"}, {"types": ("PER",)}], ids=repr)
def test_scores_are_the_metrics_of_what_is_predicted(parameters):
    model = rough(**parameters)
    documents = [*STORIES[:3], UNSEEN[0]]
    groups = {}
    for document, labels in zip(documents, model.predict(documents), strict=True):
        key = document["topic"] if model.scope == "topic" else document["id"]
        truth, found = groups.setdefault(key, ([], []))
        for mention, label in zip(document["mentions"], labels, strict=True):
            if label is not None:
                truth.append(mention["entity"])
                found.append(label)
    expected = score_documents(*zip(*groups.values(), strict=True))
    scores = model.scores(documents)
    assert scores == expected
    assert model.score(documents) == scores.b_cubed.f1 < 1.0
    assert scores.documents == len(groups)


def test_weights_are_listed_by_name_the_largest_first():
    model = fitted()
    listed = model.weights_by_name()
    sizes = [abs(weight) for weight in listed.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 0.0
    assert listed == dict(zip(model.weight_names_, model.weights_.tolist(), strict=True))
    assert len(listed) == len(model.weights_)


def test_clusters_are_told_what_was_asked_for():
    names = {name: fitted(aggregates=(name,), passes=1, steps=20).weight_names_ for name in ("all", "mean")}
    assert len(names["all"]) == len(names["mean"]) < len(fitted().weight_names_)
    assert set(names["all"]) & set(names["mean"]) < set(fitted().weight_names_)
    assert set(names["all"]) | set(names["mean"]) < set(fitted().weight_names_)


def test_a_callback_sees_every_pass_and_can_end_the_learning():
    seen = []

    def enough(record, weights):
        seen.append((record, weights.copy()))
        return len(seen) == 2

    model = resolver(passes=5, steps=30).fit(STORIES, callback=enough)
    assert [record for record, _ in seen] == model.history_
    assert len(model.history_) == 2
    np.testing.assert_array_equal(seen[-1][1], model.weights_)


# the same seed, the same bits


def test_the_seed_decides_and_the_number_of_threads_does_not():
    twins = [resolver(random_state=3, n_jobs=jobs).fit(STORIES) for jobs in (1, 2, None)]
    assert len({model.weights_.tobytes() for model in twins}) == 1
    assert twins[0].history_ == twins[1].history_
    assert twins[0].weights_.tobytes() != fitted().weights_.tobytes()
    found = [rough(n_jobs=jobs).predict(STORIES) for jobs in (1, 2, None)]
    assert found[0] == found[1] == found[2]
    assert rough(n_jobs=1).scores(STORIES) == rough(n_jobs=2).scores(STORIES)


def test_the_seed_decides_where_a_short_search_ends():
    model = pickle.loads(pickle.dumps(fitted()))
    model.ranker_ = AntecedentRanker.untrained(model.ranker_.plain.shape[1])  # so that the search decides
    found = [model.set_params(random_state=k, search_steps=1).predict(STORIES) for k in (0, 0, 1, 2)]
    assert found[0] == found[1]
    assert found[0] != found[2] or found[0] != found[3]


IN_ANOTHER_PROCESS = """
from test_estimator import STORIES, UNSEEN, resolver

model = resolver(passes=1, steps=40).fit(STORIES)
print(model.weights_.tobytes().hex(), model.predict(UNSEEN))
"""


def test_a_process_with_other_threads_and_hashes_finds_the_same():
    """Sets of words are looked at in another order there."""
    place = Path(__file__).parent
    there = in_another_process(IN_ANOTHER_PROCESS, place, place.parents[1])
    model = resolver(passes=1, steps=40).fit(STORIES)
    assert there == f"{model.weights_.tobytes().hex()} {model.predict(UNSEEN)}"


# model files


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"scope": "topic", "types": ("LOC", "PER"), "without_types": ("ORG",), "random_state": np.int64(4)},
        {"aggregates": ("count", "mean"), "search_steps": 7, "update": Unit(rate=0.5), "accept": "always"},
    ],
    ids=repr,
)
def test_a_saved_model_comes_back_as_it_was(tmp_path, parameters):
    model = fitted(**parameters)
    model.save(tmp_path / "m.fw")
    again = CoreferenceResolver.load(tmp_path / "m.fw")
    assert again.weights_.tobytes() == model.weights_.tobytes()
    assert again.weight_names_ == model.weight_names_
    assert again.settings_ == model.settings_
    assert again.history_ == model.history_
    assert again.predict(UNSEEN) == model.predict(UNSEEN)
    assert again.scores(UNSEEN) == model.scores(UNSEEN)
    for name in KEPT:
        given = getattr(model, name)
        assert getattr(again, name) == (list(given) if isinstance(given, tuple) else given)
    again.save(tmp_path / "again.fw")
    first, second = (read_model(tmp_path / name) for name in ("m.fw", "again.fw"))
    assert first.metadata == second.metadata


def test_a_saved_model_says_how_it_was_learned(tmp_path):
    fitted(cap=0.5, random_state=2).save(tmp_path / "m.fw")
    saved = read_model(tmp_path / "m.fw", KIND)
    assert saved.provenance["seed"] == 2
    assert saved.provenance["configuration"] == saved.metadata["settings"]
    learning = saved.metadata["settings"]["learning"]
    assert learning["update"] == PassiveAggressive(cap=0.5).as_dict()
    assert (learning["passes"], learning["steps"], learning["truth_starts"]) == (2, 300, 0.5)


def test_settings_can_be_replaced_when_a_model_is_loaded(tmp_path):
    fitted().save(tmp_path / "m.fw")
    model = CoreferenceResolver.load(tmp_path / "m.fw", types=["PER"], n_jobs=1, search_steps=9)
    assert (model.types, model.n_jobs, model.search_steps) == (["PER"], 1, 9)
    assert model.predict(STORIES[:1]) == [[0, 1, None, 1, 0, None]]


@pytest.mark.parametrize("changed", [{"scope": "topic"}, {"aggregates": ["count"]}], ids=repr)
def test_a_model_is_not_used_with_other_features_than_it_was_trained_with(tmp_path, changed):
    fitted().save(tmp_path / "m.fw")
    model = CoreferenceResolver.load(tmp_path / "m.fw", **changed)
    with pytest.raises(
        InvalidArgumentError, match=r"features that are computed now differ .* set those, or train it again"
    ):
        model.predict(STORIES)


def test_files_that_are_none_of_its_own_are_refused(tmp_path):
    fitted().save(tmp_path / "m.fw")
    with pytest.raises(ModelFileError, match=r"'alignment'.*CoreferenceResolver\.load"):
        factorwise.OntologyAligner.load(tmp_path / "m.fw")
    with pytest.raises(ModelFileError, match=r"none\.fw: no such file"):
        CoreferenceResolver.load(tmp_path / "none.fw")


# what is refused


@pytest.mark.parametrize("given", [STORIES[0], document_from(STORIES[0]), "train.jsonl"], ids=type)
def test_a_single_document_is_refused_with_the_remedy(given):
    for call in (resolver().fit, fitted().predict, fitted().score):
        with pytest.raises(InvalidArgumentError, match="put it into one, or read a file with read_documents"):
            call(given)


def test_a_record_that_is_no_document_is_told_by_its_number():
    for call in (resolver().fit, fitted().predict):
        with pytest.raises(DataFileError, match="document 1: has no 'mentions'"):
            call([STORIES[0], {"tokens": ["a"]}])


REFUSED = [
    ({"update": "mirra"}, "Did you mean 'mira'"),
    ({"update": "pa-ii", "cap": 0.0}, "cap must be a finite number greater than zero"),
    ({"cap": -0.1}, "cap must be a finite number greater than zero"),
    ({"cap": math.nan}, "cap must be a finite number greater than zero"),
    ({"accept": "never"}, "accept must be one of"),
    ({"metric": "muc"}, "metric must be one of"),
    ({"scope": "corpus"}, "scope must be 'document' or 'topic'"),
    ({"types": "PER"}, "types must be a list of types, but 'PER' was given"),
    ({"without_types": "LOC"}, "without_types must be a list of types"),
    ({"aggregates": ("most",)}, "aggregates must be one or more of"),
    ({"passes": 0}, "passes must be at least 1"),
    ({"steps": 0}, "steps must be at least 1"),
    ({"truth_starts": 1.5}, "truth_starts must be between 0 and 1"),
    ({"random_state": -1}, "random_state must be a whole number from 0 on"),
    ({"random_state": None}, "random_state must be a whole number from 0 on"),
    ({"random_state": True}, "random_state must be a whole number from 0 on"),
]


@pytest.mark.parametrize(("parameters", "remedy"), REFUSED, ids=[repr(given) for given, _ in REFUSED])
def test_parameters_that_make_no_sense_are_refused_when_fitting(parameters, remedy):
    model = resolver(**parameters)
    with pytest.raises(InvalidArgumentError, match=remedy):
        model.fit(STORIES)
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"search_steps": 0}, "search_steps must be at least 1"),
        ({"n_jobs": 0}, "n_jobs must be at least 1, or None or -1"),
        ({"types": "PER"}, "types must be a list of types"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_when_predicting(parameters, remedy):
    model = pickle.loads(pickle.dumps(fitted())).set_params(**parameters)
    for call in (model.predict, model.score):
        with pytest.raises(InvalidArgumentError, match=remedy):
            call(STORIES)


def test_topics_are_needed_where_topics_are_clustered():
    without = [{key: value for key, value in one.items() if key != "topic"} for one in STORIES]
    for call in (resolver(scope="topic").fit, fitted(scope="topic").predict):
        with pytest.raises(DataFileError, match="add the key, or use scope='document'"):
            call(without)
