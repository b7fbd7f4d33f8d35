"""Every learner with every rule, walk, proposer and kind of world, on small tasks with a known answer."""

from itertools import product

import numpy as np
import pytest

from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.assignment_proposals import LocalRelabel, Swap, UniformRelabel
from factorwise.inference.mcmc.proposals.mixtures import Mixture
from factorwise.inference.mcmc.run import anneal
from factorwise.learning.samplerank.contrastive import ContrastiveDivergence
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.learning.samplerank.perceptron import StructuredPerceptron
from factorwise.learning.samplerank.preferences import AccuracyPreference
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.learning.updates import RULES
from factorwise.model.labels.library import Bias, Transitions, UnaryFeatures
from factorwise.model.model import Model
from factorwise.variables.domain import Domain
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from walk_cases import MIXTURES, statistics_of, tell_tale_world

pytestmark = pytest.mark.slow  # half a minute: the parts are tested one by one elsewhere

ACCEPTANCES = ("metropolis", "unbalanced", "greedy", "always", "truth")
ALL_RULES = [name for name in RULES if name != "pa-i"]
OTHERS = {
    "CD-1": ContrastiveDivergence(length=1),
    "CD-10": ContrastiveDivergence(length=10),
    "PCD": ContrastiveDivergence(length=5, persistent=True, rate=0.02),
    "perceptron": StructuredPerceptron(),
}

TRUTH = [0, 0, 1, 1, 2]
WORLDS = all_partitions(5)
STATISTICS = np.array([statistics_of(tell_tale_world(TRUTH, None).model, world) for world in WORLDS])
RIGHT = [world.canonical() for world in WORLDS].index(tell_tale_world(TRUTH, None).truth.canonical())


def assert_the_truth_scores_highest(weights):
    """By enumeration of all worlds."""
    lead = (STATISTICS[RIGHT] - STATISTICS) @ weights
    assert np.delete(lead, RIGHT).min() > 0.0


@pytest.mark.parametrize("mixture", ["items", "merge and split", "many"])
@pytest.mark.parametrize("rule", ALL_RULES)
def test_samplerank_finds_the_clustering(rule, mixture):
    training = tell_tale_world(TRUTH, MIXTURES[mixture])
    for accept, best_of, average in product(ACCEPTANCES, (1, 2), (True, False)):
        if accept == "metropolis" and best_of > 1:
            continue
        learner = SampleRank(update=rule, accept=accept, best_of=best_of, average=average)
        found = learner.fit([training], passes=10, steps=200, progress=False)
        assert_the_truth_scores_highest(found.weights)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("learner", OTHERS)
def test_other_learners_find_the_clustering(learner, mixture):
    training = tell_tale_world(TRUTH, MIXTURES[mixture])
    found = OTHERS[learner].fit([training], passes=10, steps=400, progress=False)
    assert_the_truth_scores_highest(found.weights)


TAG = Domain("tag", ["N", "V", "O"])
SPOKEN = ["N", "V", "O", "N"]
WORDS = [["w0", "cap"], ["w1"], ["w2", "cap"], ["w3"]]


def tagged_world(proposer):
    """Four words, each with a feature of its own: weights that give every word its tag exist."""
    tag = Column.hidden("tag", TAG, 4)
    variables = Variables([tag])
    model = Model([UnaryFeatures(tag, Features.from_rows(WORDS)), Transitions(tag), Bias(tag)])
    truth = Assignment(variables, [TAG.labels.index(label) for label in SPOKEN])
    return TrainingWorld(
        model=model,
        proposer=proposer(model),
        start=Assignment(variables, [0, 0, 1, 2]),
        preference=AccuracyPreference(truth),
        truth=truth,
    )


PROPOSERS = {
    "uniform": lambda model: UniformRelabel(),
    "swaps": lambda model: Swap(),
    "mixture": lambda model: Mixture([UniformRelabel(), Swap(), LocalRelabel(model)], [2.0, 1.0, 1.0]),
}


def assert_the_truth_leads_its_neighbors(training, weights):
    model = Model(training.model.templates, weights)
    changes = [p.diff for p in training.proposer.support(training.truth) if p.diff is not None]
    assert changes
    assert max(model.gain(training.truth, diff) for diff in changes) < 0.0


ALL_THREE = [
    *product(ALL_RULES, ["uniform"]),
    *product(("unit", "mira", "cw"), ["swaps"]),
    ("mira", "mixture"),
]


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize(("rule", "proposer"), ALL_THREE)
def test_samplerank_finds_the_tags(rule, proposer, engine):
    """From swaps alone, which keep how often each tag occurs, it learns to tell the swaps apart."""
    training = tagged_world(PROPOSERS[proposer])
    for accept, average in zip(ACCEPTANCES, (True, False, True, False, True), strict=True):
        learner = SampleRank(update=rule, accept=accept, average=average)
        found = learner.fit([training], passes=4, steps=50, progress=False, engine=engine)
        assert_the_truth_leads_its_neighbors(training, found.weights)


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("learner", OTHERS)
def test_other_learners_find_the_tags_and_annealing_returns_them(learner, engine):
    training = tagged_world(PROPOSERS["uniform"])
    found = OTHERS[learner].fit([training], passes=4, steps=150, progress=False, engine=engine)
    assert_the_truth_leads_its_neighbors(training, found.weights)
    kernel = Metropolis(Model(training.model.templates, found.weights), training.proposer)
    annealed = anneal(kernel, training.start, steps=400, progress=False, engine=engine)
    assert annealed.best.canonical() == training.truth.canonical()
