"""The F1 of spans as a preference: what it says of a change is what seqeval's reading says of the worlds."""

import numpy as np
import pytest

import factorwise as fw
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.metrics.sequence import SpanCounter

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
CHAINS = [0, 4, 4, 5, 11]


def make_world(values):
    column = fw.Column.hidden("label", fw.Domain("label", LABELS), len(values))
    return fw.Assignment(fw.Variables([column]), list(values))


def f1_of(truth, world):
    return SpanCounter(LABELS).scores(truth.values, world.values, CHAINS).micro.f1


@pytest.mark.parametrize("seed", range(20))
def test_gains_are_differences_of_the_metric(seed):
    rng = np.random.default_rng(seed)
    truth, world = (make_world(rng.integers(5, size=11)) for _ in range(2))
    judge = fw.learning.SpanPreference(truth, CHAINS, smoothing=0.0).watch(world)
    assert judge.value == pytest.approx(f1_of(truth, world))
    for _ in range(60):
        chosen = rng.choice(11, size=rng.integers(1, 4), replace=False)
        diff = world.relabel(chosen.tolist(), rng.integers(5, size=len(chosen)).tolist())
        if not diff.variables:
            continue
        expected = f1_of(truth, world.after(diff)) - f1_of(truth, world)
        assert judge.gain(world, diff) == pytest.approx(expected, abs=1e-12)
        judge.applied(world, diff)
        world.apply(diff)
        assert judge.value == pytest.approx(f1_of(truth, world))


def test_samplerank_finds_rare_spans_compiled_and_interpreted_alike():
    rng = np.random.default_rng(0)
    word = rng.integers(8, size=60)
    labels = np.where(word == 1, 1, np.where((word == 2) & (np.roll(word, 1) == 1), 2, 0))
    truth = make_world(labels)
    chains = np.arange(0, 61, 10)
    column = truth.variables.columns[0]
    templates = [
        fw.templates.UnaryFeatures(column, fw.Features.from_dense(np.eye(8)[word])),
        fw.templates.Transitions(column, chains=chains),
    ]
    world = fw.learning.TrainingWorld(
        model=fw.Model(templates),
        proposer=fw.mcmc.UniformRelabel(),
        start=fw.Assignment.initial(truth.variables),
        truth=truth,
        preference=fw.learning.SpanPreference(truth, chains),
    )
    learned = [
        fw.learning.SampleRank().fit(
            [world], passes=4, steps=2_000, truth_starts=0.5, engine=engine, progress=False
        )
        for engine in ("compiled", "plain")
    ]
    np.testing.assert_allclose(learned[0].weights, learned[1].weights, rtol=1e-9)
    gibbs = fw.mcmc.Gibbs(fw.Model(templates, learned[0].weights), scan="systematic")
    best = fw.anneal(gibbs, world.start, steps=50, progress=False).best
    assert SpanCounter(LABELS).scores(truth.values, best.values, chains).micro.f1 > 0.95


def test_wrong_spans_cost_something_while_none_is_right():
    truth, world = make_world([1, 2, 0]), make_world([0, 0, 3])
    diff = world.relabel([2], [0])
    assert fw.learning.SpanPreference(truth, smoothing=0.0).watch(world).gain(world, diff) == 0.0
    assert fw.learning.SpanPreference(truth).watch(world).gain(world, diff) == pytest.approx(2 / 3 - 2 / 4)


def test_what_does_not_fit_is_refused():
    truth = make_world([0, 1, 2])
    with pytest.raises(InvalidArgumentError, match=r"must be of type Assignment|Assignment of one column"):
        fw.learning.SpanPreference([0, 1, 2])
    with pytest.raises(ShapeError, match="from 0 to the 3 variables"):
        fw.learning.SpanPreference(truth, [0, 2])
    with pytest.raises(ShapeError, match="has 3 variables"):
        fw.learning.SpanPreference(truth).watch(make_world([0]))
