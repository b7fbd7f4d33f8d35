"""Training a proposer of adaptive jumps on documents, for use in others."""

import numpy as np
import pytest

from adaptive_cases import (
    APART,
    FOUR,
    OTHER_NAMES,
    SMALL_TUNING,
    adaptive,
    group_jumps,
    group_model,
    share_of_good,
    weights_for,
)
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.adaptive import training
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.training import TunedDocument, train_proposer
from factorwise.inference.mcmc.adaptive.tuning import Tuning
from factorwise.kernels.clusterings.adaptive.jump_odds import MERGE, SPLIT
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.world.partition import Partition


def document(groups, seed, *, judged=True):
    model = group_model(groups, seed=seed)
    start = Partition.singletons(len(groups))
    truth = TruthPreference(groups, "rand") if judged else None
    return TunedDocument(AdaptiveSplitMerge(JumpFeatures(model)), start, truth)


@pytest.mark.parametrize("judged", [True, False])
def test_weights_trained_on_some_documents_raise_the_chance_of_good_jumps_in_another(judged):
    documents = [document([0, 0, 0, 1, 1, 1, 2, 2], 1, judged=judged), document([0] * 4 + [1] * 5, 2)]
    weights = train_proposer(documents, tuning=SMALL_TUNING, seed=4, progress=False)
    again = train_proposer(documents, tuning=SMALL_TUNING, seed=4, progress=False)
    np.testing.assert_array_equal(weights.vector, again.vector)
    jumps = group_jumps(seed=9)
    before = share_of_good(jumps)
    jumps.weights = weights
    assert before < 0.5
    assert share_of_good(jumps) > 0.8
    assert weights.kinds[MERGE] > 3 * weights.kinds[SPLIT] > 0


def test_training_where_nothing_can_be_improved_leaves_the_weights():
    one = document([0], 0)
    start = one.proposer.with_weights(weights_for(one.proposer.features, "moves too", 1.0))
    weights = train_proposer([TunedDocument(start, one.start)], tuning=SMALL_TUNING, progress=False)
    np.testing.assert_array_equal(weights.vector, start.learned.vector)


def test_the_lessons_of_all_documents_count_by_their_mean(monkeypatch):
    """The same lessons twice teach what they teach once: gradients are averaged, the ridge is not."""
    one, lessons = document([0, 0, 0, 1, 1, 1, 2, 2], 1), []
    climb = training.Climb

    class SameClimb(climb):
        def __init__(self, *made, keep_lessons):
            super().__init__(*made, keep_lessons=keep_lessons)
            if not lessons:
                super().run(5, SMALL_TUNING, jumps=50, patience=3)
                lessons.extend(self.lessons)
                self.jumps.weights = one.proposer.learned
            self.lessons = list(lessons)

        def run(self, *given, **named):
            pass

    monkeypatch.setattr(training, "Climb", SameClimb)
    once, twice = (
        train_proposer([one] * count, tuning=SMALL_TUNING, ridge=0.5, seed=4, progress=False)
        for count in (1, 2)
    )
    assert lessons
    np.testing.assert_allclose(twice.vector, once.vector, rtol=1e-3, atol=1e-4)
    assert np.abs(once.vector).max() > 0.01


BAD = {
    "no documents": (lambda: train_proposer([]), InvalidArgumentError, "no document to train on: give"),
    "documents with other features": (
        lambda: train_proposer(
            [TunedDocument(adaptive(FOUR), APART), TunedDocument(adaptive(OTHER_NAMES), APART)],
            tuning=Tuning(iterations=1, samples=5),
            patience=1,
            progress=False,
        ),
        InvalidArgumentError,
        "choose the same features, of models with the same templates",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_is_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()
