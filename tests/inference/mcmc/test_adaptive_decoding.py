"""Climbing by adaptive jumps that are tuned on the way."""

import math

import numpy as np
import pytest

from adaptive_cases import APART, FOUR, GROUPS, SMALL_TUNING, adaptive, group_model, model_for
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.clusterings import PartitionEnumeration
from factorwise.inference.mcmc.adaptive.decoding import Climb, decode
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import Tuning
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition


def decode_groups(groups=GROUPS, *, explore=0.1, kinds=(0.5, 0.5, 0.0), start=None, model=None, **options):
    model = model or group_model(groups)
    features = JumpFeatures(model)
    proposer = AdaptiveSplitMerge(features, JumpWeights.zero(features.names, kinds), explore=explore)
    world = Partition.singletons(len(groups)) if start is None else start
    if options.get("by") == "truth" and "truth" not in options:
        options["truth"] = TruthPreference(groups, "rand")
    options.setdefault("tuning", SMALL_TUNING)
    return decode(model, world, proposer, progress=False, **options)


@pytest.mark.parametrize("by", ["score", "truth"])
def test_decoding_comes_to_the_truth(by):
    found = decode_groups(by=by)
    assert found.world == Partition.from_keys(GROUPS)
    assert found.score == pytest.approx(group_model(GROUPS).score(found.world))
    assert (np.diff(found.trace) >= 0).all()
    assert found.converged
    assert found.factors_seen > 0
    assert found.odds_seen > 0
    assert len(found.trace) == found.jumps + 1
    if by == "truth":
        assert found.value == found.trace[-1] == 1.0
    else:
        assert math.isnan(found.value)
        assert found.trace[-1] == pytest.approx(found.score)


def test_the_truth_may_be_watched_while_the_score_is_climbed():
    truth = TruthPreference(GROUPS, "b-cubed")
    found = decode_groups(truth=truth)
    assert found.value == pytest.approx(1.0)
    assert found.trace[-1] == pytest.approx(found.score)


def test_tuning_many_weights_by_few_jumps_is_nothing_to_warn_of():
    """Warnings are errors here. The fits of a round are cut short, and the next one goes on."""
    world = Partition.from_keys(np.random.default_rng(0).integers(0, 12, 40))
    model, truth = model_for("tables", 40), TruthPreference(np.arange(40) % 7, "b-cubed")
    options = {"by": "truth", "truth": truth, "jumps": 11, "progress": False}
    found = decode(model, world, adaptive(model), tuning=Tuning(iterations=4), **options)
    assert found.trace[-1] > found.trace[0]


def test_decoding_finds_the_best_of_all_worlds_where_features_err():
    groups = [0, 0, 0, 1, 1, 1, 1]
    model = group_model(groups, flips=0.2, seed=3)
    found = decode_groups(groups, model=model, kinds=(0.4, 0.4, 0.2), patience=40)
    best = PartitionEnumeration(model, 7).scores.max()
    assert best > model.score(Partition.from_keys(groups))
    assert found.score == pytest.approx(best)


def test_a_good_start_and_weights_that_were_learned_before_need_fewer_factors():
    first = decode_groups(seed=1)
    model = group_model(GROUPS)
    proposer = AdaptiveSplitMerge(JumpFeatures(model), first.weights)
    again = decode(model, Partition.singletons(12), proposer, tuning=None, patience=200, progress=False)
    assert again.world == first.world
    assert again.factors_seen < first.factors_seen
    np.testing.assert_array_equal(again.weights.vector, first.weights.vector)


def test_decoding_as_published_tunes_before_every_jump_and_stops_at_the_first_that_fails():
    found = decode_groups(tuning=Tuning(every=1, iterations=5, samples=30, remember=False), patience=1)
    assert found.converged
    gained = np.diff(found.trace)
    assert (gained[:-1] > 0).all()
    assert gained[-1] == 0
    assert found.world == Partition.from_keys(GROUPS)


def test_decoding_stops_when_it_is_told_to():
    whole = decode_groups()
    goal = whole.trace[0] + 0.6 * (whole.trace[-1] - whole.trace[0])
    early = decode_groups(until=goal)
    assert early.trace[-1] >= goal > early.trace[-2]
    assert not early.converged
    assert decode_groups(until=whole.trace[0]).jumps == 0  # the start is as high already
    few = decode_groups(jumps=3)
    assert few.jumps == 3
    assert not few.converged
    np.testing.assert_array_equal(few.trace, whole.trace[:4])
    none = decode_groups(jumps=0)
    assert none.jumps == 0
    assert none.world == Partition.singletons(12)
    idle = decode_groups(tolerance=1e6, patience=4)
    assert idle.jumps == 4
    assert idle.converged
    assert idle.world == Partition.singletons(12)


def test_decoding_again_with_the_same_seed_gives_the_same_trace():
    runs = [decode_groups(seed=seed, patience=5) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(runs[0].trace, runs[1].trace)
    np.testing.assert_array_equal(runs[0].weights.vector, runs[1].weights.vector)
    assert runs[0].trace.tolist() != runs[2].trace.tolist()
    same = [decode_groups(seed=np.random.default_rng(3), patience=5).trace for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_a_world_of_one_item_is_decoded_at_once():
    found = decode_groups([0], by="score", patience=2)
    assert found.world == Partition.singletons(1)
    assert found.converged
    assert found.jumps == 2
    assert not found.weights.vector.any()


def test_lessons_are_kept_for_training_alone():
    table = PairTable.from_squares({"alike": np.ones((4, 4))})
    model = Model([PairTableTemplate("pairs", table, ["count"])], [1.0])
    for keep in (False, True):
        proposer, start = AdaptiveSplitMerge(JumpFeatures(model)), Partition.singletons(4)
        climb = Climb(model, proposer, start, "score", None, Stream(0), keep_lessons=keep)
        climb.run(3, Tuning(every=1, iterations=2, samples=9), jumps=2, patience=9)
        assert len(climb.lessons) == 2 * keep
    proposer = AdaptiveSplitMerge(JumpFeatures(model))
    climb = Climb(model, proposer, Partition.singletons(4), "score", None, Stream(0), keep_lessons=True)
    climb.run(3, Tuning(every=3, iterations=2, samples=9), jumps=1, patience=9)
    assert len(climb.lessons) == 1  # the first jump of every three is tuned


BAD = {
    "no truth to climb": (
        lambda: decode(FOUR, APART, adaptive(FOUR), by="truth"),
        InvalidArgumentError,
        "give truth=",
    ),
    "climbing something else": (
        lambda: decode(FOUR, APART, adaptive(FOUR), by="luck"),
        InvalidArgumentError,
        "by must be 'score' or 'truth'",
    ),
    "no samples": (
        lambda: decode(FOUR, APART, adaptive(FOUR), samples=0),
        InvalidArgumentError,
        "samples must be at least 1",
    ),
    "negative jumps": (
        lambda: decode(FOUR, APART, adaptive(FOUR), jumps=-1),
        InvalidArgumentError,
        "jumps must be zero or more",
    ),
    "negative tolerance": (
        lambda: decode(FOUR, APART, adaptive(FOUR), tolerance=-1.0),
        InvalidArgumentError,
        "tolerance must be zero or more",
    ),
    "no patience": (
        lambda: decode(FOUR, APART, adaptive(FOUR), patience=0),
        InvalidArgumentError,
        "patience must be at least 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_is_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()


def test_a_truth_that_does_not_fit_is_refused():
    table = PairTable.from_squares({"alike": np.eye(4)})
    model = Model([PairTableTemplate("pairs", table, ["count"])])
    proposer, start = AdaptiveSplitMerge(JumpFeatures(model)), Partition.singletons(4)
    wrong = TruthPreference([0, 0, 1], "b-cubed")
    with pytest.raises(ShapeError, match="has 3 items, but the world has 4"):
        decode(model, start, proposer, by="truth", truth=wrong, progress=False)
    nobody = TruthPreference([None] * 4, "b-cubed")
    with pytest.raises(InvalidArgumentError, match="no truth to climb"):
        decode(model, start, proposer, by="truth", truth=nobody, progress=False)
