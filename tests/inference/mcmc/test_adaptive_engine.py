"""Adaptive jumps in compiled code: the plain proposer's steps, odds kept in step, tuning, decoding.

All in one file, because the kernels behind it take a minute to compile.
"""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from adaptive_cases import KINDS, MODELS, SCALES, group_model, model_for, weights_for
from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.inference.exact.clusterings import PartitionEnumeration, all_partitions
from factorwise.inference.mcmc.adaptive.decoding import Climb, decode
from factorwise.inference.mcmc.adaptive.engine import Jump, JumpEngine
from factorwise.inference.mcmc.adaptive.family import JumpFamily
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.training import TunedDocument, train_proposer
from factorwise.inference.mcmc.adaptive.tuning import SMALLEST_KIND, Tuning, tune
from factorwise.inference.mcmc.engine import PlainEngine, PlainEngineWarning, make_engine
from factorwise.inference.mcmc.gradient_engine import Manner
from factorwise.inference.mcmc.metropolis import Metropolis, log_acceptance
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import Merge, Split
from factorwise.inference.mcmc.run import sample
from factorwise.kernels.jump_odds import LOG_RATIO, MERGE, MOVE, SPLIT
from factorwise.kernels.truth_gains import B_CUBED_F1, truth_arrays
from factorwise.learning.preferences import TruthPreference
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.model.table_templates import PairTableTemplate
from factorwise.rng import Stream
from factorwise.testing import exact_distribution
from factorwise.variables.pair_table import PairTable
from factorwise.world.diff import Transfer
from factorwise.world.partition import Partition
from partition_cases import start_for
from thinning import thinned

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
CLOSE = 1e-4  # of scores and log-ratios: fields are in single precision
SINGLE = 1e-5  # of features, which are handed out in single precision
SMALL_TUNING = Tuning(iterations=6, samples=40)
SOME = Partition.from_labels([0, 0, 0, 0, 1, 1, 1, 2, 3])


@cache
def parts_of(case, n, chosen=None):
    """A model, its program and its features, each made once."""
    model = model_for(case, n)
    return model, PartitionProgram(model, n), JumpFeatures(model, chosen)


def engine_for(case, n, world=None, *, chosen=None, size=None, scale=1.0, kinds="moves too", **options):
    """An engine whose weights mean nothing; ``size`` is the merge weight of the logarithm of the size."""
    model, program, features = parts_of(case, n, chosen)
    weights = weights_for(features, kinds, scale)
    if size is not None:
        weights = weights.with_vector(np.append(weights.vector[:-1], size))
    proposer = AdaptiveSplitMerge(features, weights, **{"explore": 0.15, **options})
    start = start_for(n) if world is None else world
    return JumpEngine(Metropolis(model, proposer), start, program=program)


def walk_freely(engine, stream, steps):
    """Take every jump that is drawn."""
    return engine.learn(stream, Manner("always"), engine._resting, None, steps, learning=False)


def assert_same_trace(engine, stream, temperatures, steps):
    """Every step is the plain one: what is drawn, its chances there and back, and what becomes of it."""
    proposer, model = engine.kernel.proposer, engine.kernel.model
    plain, world, score, changed = stream.copy(), engine.world, engine.score, 0
    for step in range(steps):
        temperature = temperatures[step % len(temperatures)]
        proposal = proposer.draw(plain, world)
        chance = plain.uniform()
        gain = model.gain(world, proposal.diff)
        accepted = chance < math.exp(log_acceptance(gain, proposal, temperature))
        assert engine.advance(stream, temperature, 1) == accepted
        ratio = proposal.log_backward - proposal.log_forward
        assert engine._jumps.logs[LOG_RATIO] == pytest.approx(ratio, abs=CLOSE)
        if accepted:
            world.apply(proposal.diff)
            score += gain
            changed += 1
        np.testing.assert_array_equal(engine.view.labels, world.labels)
        np.testing.assert_array_equal(stream.state, plain.state)
    assert engine.score == pytest.approx(score, abs=CLOSE)
    assert not engine.view.arrays.items["mark"].any()
    return changed


SETTINGS = thinned(("uniform", "guided"), KINDS, (0.0, 0.15, 1.0), SCALES)


CASES = [pytest.param(case, marks=pytest.mark.slow if case == "functions" else ()) for case in MODELS]


@pytest.mark.parametrize("case", CASES)
def test_every_model_is_followed(case):
    for parts in ("uniform",) if case == "links" else ("uniform", "guided"):
        engine = engine_for(case, 9, SOME, parts=parts)
        assert assert_same_trace(engine, Stream(3), (0.7, 3.0, 50.0), 50) > 5


@pytest.mark.parametrize(("parts", "kinds", "explore", "scale"), SETTINGS)
def test_every_setting_is_followed(parts, kinds, explore, scale):
    engine = engine_for("everything", 9, SOME, parts=parts, kinds=kinds, explore=explore, scale=SCALES[scale])
    for seed in range(2):  # from worlds that some settings would not leave again
        walk_freely(engine, Stream(seed), 20)
        assert_same_trace(engine, Stream(seed, 1), (1.0, 20.0), 20)


@pytest.mark.parametrize("case", CASES)
def test_larger_worlds_are_followed_for_long(case):
    parts = "uniform" if case == "links" else "guided"
    engine = engine_for(case, 12, parts=parts, scale=2.0)
    walk_freely(engine, Stream(1), 500)
    assert assert_same_trace(engine, Stream(2), (0.7, 3.0, 50.0), 25) > 2


def counted(name):
    return name.startswith(("table 0: count", "table 0: mean"))


def of_pairs_alone(name):
    return "table" not in name


@pytest.mark.parametrize("chosen", [counted, of_pairs_alone])
def test_a_proposer_that_sees_some_of_the_statistics_is_followed(chosen):
    for parts in ("uniform", "guided"):
        engine = engine_for("everything", 9, chosen=chosen, parts=parts)
        assert 1 < engine.proposer.features.size < engine.kernel.model.blocks.size
        assert assert_same_trace(engine, Stream(5), (1.0, 20.0), 30) > 2
        walk_freely(engine, Stream(6), 200)
        assert_odds_are_kept(engine, tolerance=1e-4)


@pytest.mark.parametrize("explore", [0.0, 0.3])
def test_the_chances_of_the_way_back_are_exact_where_one_pair_outweighs_all_others(explore):
    """Large clusters attract each other e^100 times as much as small ones, which come and go.

    What is left of a sum when its largest entry is gone is then far below the rounding of the sum.
    """
    engine = engine_for("tables", 7, Partition.singletons(7), explore=explore, size=150.0)
    proposer, stream, worst, splits = engine.kernel.proposer, Stream(1), 0.0, 0
    for _ in range(150):
        proposal = proposer.draw(stream.copy(), engine.view)
        engine.advance(stream, 300.0, 1)
        worst = max(worst, abs(proposal.log_backward - proposal.log_forward - engine._jumps.logs[LOG_RATIO]))
        splits += engine._jumps.jump[0] == SPLIT
    assert splits > 20
    assert worst < 1e-9


def test_a_single_item_never_moves():
    for parts in ("uniform", "guided"):
        engine = engine_for("tables", 1, Partition.singletons(1), parts=parts)
        stream, plain = Stream(0), Stream(0)
        assert engine.advance(stream, 1.0, 3) == 0
        for _ in range(3):
            assert not engine.kernel.step(plain, Partition.singletons(1)).accepted
        np.testing.assert_array_equal(stream.state, plain.state)
        assert engine.draw(stream, 4) == []


def assert_odds_are_kept(engine, tolerance=1e-12):
    """Everything is that of an engine that has just come to this world."""
    kept, world = engine._jumps, engine.view
    fresh = JumpEngine(engine.kernel, engine.world, program=engine.program)
    fresh.weights = engine.weights
    np.testing.assert_allclose(kept.merge_odds, fresh._jumps.merge_odds, rtol=tolerance, atol=0.0)
    np.testing.assert_allclose(kept.split_odds, fresh._jumps.split_odds, rtol=tolerance, atol=0.0)
    live = world.cluster_ids()
    np.testing.assert_allclose(
        kept.contents[live], fresh._jumps.contents[live], rtol=tolerance, atol=tolerance
    )
    dead = np.setdiff1d(np.arange(world.n_items), live)
    assert not kept.merge_odds[dead].any()
    assert not kept.merge_odds[:, dead].any()
    assert not kept.split_odds[dead].any()
    counts, recounted = engine._tables.counts, fresh._tables.counts
    if len(counts) > 0:
        np.testing.assert_array_equal(counts[live], recounted[live])
        assert not counts[world.n_items :].any()  # zeros, and the sides of splits
    assert not world.arrays.items["mark"].any()
    for cluster in live.tolist():
        exact = math.fsum(kept.merge_odds[cluster])
        assert kept.sums[cluster, 0] + kept.sums[cluster, 1] == pytest.approx(exact, rel=1e-14)
    np.testing.assert_array_equal(kept.merge_odds, kept.merge_odds.T)


LONG = {
    "tables": ({}, {"scale": 30.0}, {"explore": 0.5, "size": 120.0}),
    "links": ({}, {"scale": 30.0}),
    "edges": ({}, {"scale": 100.0}),
}


@pytest.mark.parametrize("case", LONG)
def test_the_odds_of_a_long_walk_are_those_of_a_fresh_look(case):
    """Also where they span hundreds of orders of magnitude, so that sums must be added up afresh."""
    for options in LONG[case]:
        engine = engine_for(case, 24, **options)
        spans, sizes, seen = [], set(), 0
        for round_ in range(6):
            assert walk_freely(engine, Stream(round_), 500) == 500
            assert_odds_are_kept(engine)
            assert engine.odds_seen > seen
            seen = engine.odds_seen
            odds = engine._jumps.merge_odds[engine._jumps.merge_odds > 0]
            spans.append(odds.max(initial=1.0) / odds.min(initial=1.0))
            sizes.add(engine.view.n_clusters)
        assert engine.score == pytest.approx(engine.kernel.model.score(engine.world))
        assert len(sizes) > 2
        assert max(spans) > (1e40 if options else 10.0)


def only_counts(name):
    return ": count of" in name


def test_merges_look_at_no_pair_again_where_all_features_are_sums_over_pairs():
    summed, other = engine_for("tables", 24, chosen=only_counts), engine_for("tables", 24, chosen=counted)
    for engine, again in ((summed, False), (other, True)):
        for round_ in range(4):
            walk_freely(engine, Stream(round_), 400)
            assert_odds_are_kept(engine)
            merge = next(jump for jump in engine.draw(Stream(round_, 1), 100) if jump.kind == MERGE)
            seen = engine.odds_seen
            engine.take(merge)
            assert (engine.odds_seen > seen) == again
            assert_odds_are_kept(engine)


def test_the_odds_of_a_long_walk_with_functions_of_single_precision_are_as_good_as_these():
    engine = engine_for("everything", 30, parts="guided")
    for round_ in range(3):
        walk_freely(engine, Stream(round_), 400)
        engine.advance(Stream(round_, 1), 50.0, 200)
        assert_odds_are_kept(engine, tolerance=1e-4)


def test_the_look_at_the_odds_notices_what_was_not_kept():
    engine = engine_for("tables", 24)
    walk_freely(engine, Stream(0), 50)
    jumps = engine._jumps
    before = jumps.merge_odds.copy()
    jump = next(jump for jump in engine.draw(Stream(1), 100) if jump.kind == MERGE)
    engine.take(jump)
    assert_odds_are_kept(engine)
    gone = np.setdiff1d([jump.source, jump.target], engine.view.cluster_ids())
    assert len(gone) == 1
    after = jumps.merge_odds.copy()
    a, b = engine.view.cluster_ids()[:2]
    spoiled = {
        "a cluster that is no more is not forgotten": lambda: jumps.merge_odds.__setitem__(
            gone, before[gone]
        ),
        "one pair": lambda: jumps.merge_odds.__setitem__(([a, b], [b, a]), after[a, b] * (1 + 1e-9)),
        "one side of a pair": lambda: jumps.merge_odds.__setitem__((a, b), after[a, b] * (1 + 1e-9)),
        "the sum of a row": lambda: jumps.sums.__setitem__((a, 0), jumps.sums[a, 0] * (1 + 1e-9)),
        "a content": lambda: jumps.contents.__setitem__((a, 0), jumps.contents[a, 0] + 1e-9),
    }
    for spoil in spoiled.values():
        sums, contents = jumps.sums.copy(), jumps.contents.copy()
        spoil()
        with pytest.raises(AssertionError):
            assert_odds_are_kept(engine)
        jumps.merge_odds[:], jumps.sums[:], jumps.contents[:] = after, sums, contents
        assert_odds_are_kept(engine)


@cache
def equilibrium(temperature):
    model = parts_of("few", 5)[0]
    worlds = all_partitions(5)
    return worlds, exact_distribution(model, worlds, temperature)


def pooled(expected, observed):
    """Put the rarest outcomes together, so that the chi-square approximation holds."""
    rare = expected < 5.0
    if not rare.any():
        return observed, expected
    return tuple(np.append(a[~rare], a[rare].sum()) for a in (observed, expected))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("parts", "kinds", "temperature"), thinned(("uniform", "guided"), KINDS, (1.0, 0.7, 2.5))
)
def test_chains_started_in_equilibrium_stay_there(parts, kinds, temperature, seed):
    """Starts drawn exactly make the ends independent exact draws, so that the level is honest."""
    chains = 1_000
    worlds, target = equilibrium(temperature)
    engine = engine_for("few", 5, worlds[0], parts=parts, kinds=kinds)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    observed, changed, stream = np.zeros(len(worlds)), 0, Stream(seed, 1)
    drawn = np.random.default_rng(seed).multinomial(chains, target)
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        for _ in range(count):
            engine.reset(world)
            changed += engine.advance(stream, temperature, 4)
            observed[position[engine.view.canonical()]] += 1
    assert changed > chains
    assert chisquare(*pooled(chains * target, observed)).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("parts", ["uniform", "guided"])
def test_jumps_are_drawn_as_often_as_the_plain_proposer_declares(parts, seed):
    draws = 3_000
    world = Partition.from_labels([0, 0, 0, 1, 1, 2])
    engine = engine_for("everything", 6, world, parts=parts)
    expected = {}
    for proposal in engine.kernel.proposer.support(world):
        key = world.after(proposal.diff).canonical()
        expected[key] = expected.get(key, 0.0) + draws * math.exp(proposal.log_forward)
    observed = dict.fromkeys(expected, 0)
    for jump in engine.draw(Stream(seed), draws):
        observed[world.after(Transfer(jump.items, jump.source, jump.target)).canonical()] += 1
    counts = [np.array(list(found.values()), float) for found in (expected, observed)]
    assert chisquare(*pooled(*counts)).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_sampling_with_a_trained_proposer_gives_the_exact_chances_of_being_together(seed):
    """Chains of one draw each: the draws are independent, so that counts are binomial."""
    model, _, features = parts_of("few", 5)
    proposer = AdaptiveSplitMerge(features, weights_for(features, "moves too", 1.0), parts="guided")
    pairs, chains = list(combinations(range(5), 2)), 120
    options = {"draws": 1, "burn_in": 300, "chains": chains, "engine": "compiled", "progress": False}
    found = sample(Metropolis(model, proposer), Partition.singletons(5), seed=seed, pairs=pairs, **options)
    together = PartitionEnumeration(model, 5).together()
    for pair, share in zip(pairs, found.co_clustering(), strict=True):
        count = round(share * chains)
        assert binomtest(count, chains, together[pair]).pvalue > FALSE_ALARM / len(pairs)


def test_draws_do_not_depend_on_the_number_of_threads():
    model, _, features = parts_of("tables", 12)
    sampler = Metropolis(model, AdaptiveSplitMerge(features, weights_for(features, "moves too", 1.0)))
    runs = [
        sample(sampler, start_for(12), draws=10, thin=20, chains=3, threads=threads, progress=False)
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].scores, runs[1].scores)
    assert runs[0].last == runs[1].last


def test_features_handed_out_are_those_of_the_definition():
    n = 9
    engine = engine_for("everything", n)
    walk_freely(engine, Stream(4), 30)
    features, world = engine.proposer.features, engine.view
    between, within = engine.features()
    clusters = [world.members(c).tolist() for c in world.cluster_ids()]
    rows = [features.between(clusters[a], clusters[b], n) for a in range(len(clusters)) for b in range(a)]
    np.testing.assert_allclose(between, rows, rtol=SINGLE, atol=SINGLE)
    large = world.arrays.clusters["splittable"][: world.n_splittable]
    rows = [features.within(world.members(c).tolist(), n) for c in large]
    np.testing.assert_allclose(within, rows, rtol=SINGLE, atol=SINGLE)
    source = large[0]
    part = world.members(source).tolist()[:1]
    rows = [features.between(part, [item for item in cluster if item not in part], n) for cluster in clusters]
    jump = Jump(MOVE, tuple(part), int(source), -1, 0, 0.0, 0.0)
    np.testing.assert_allclose(engine.part_features(jump), rows, rtol=SINGLE, atol=SINGLE)
    assert_odds_are_kept(engine, tolerance=1e-4)


def test_trying_other_weights_sets_the_odds_that_they_would_have():
    engine = engine_for("tables", 12)
    other = weights_for(engine.proposer.features, "moves too", 1.5, seed=1)
    engine.spread(other, *engine.features())
    tried = engine._jumps._replace(**{k: v.copy() for k, v in engine._jumps._asdict().items()})
    engine.weights = other
    assert engine.weights is other
    np.testing.assert_allclose(tried.merge_odds, engine._jumps.merge_odds, rtol=1e-4)
    np.testing.assert_allclose(tried.split_odds, engine._jumps.split_odds, rtol=1e-4)
    np.testing.assert_allclose(tried.sums[:, 0], engine._jumps.sums[:, 0], rtol=1e-4)
    assert_odds_are_kept(engine)


def test_drawing_leaves_the_world_alone_and_judges_what_it_draws():
    engine = engine_for("everything", 9, SOME, parts="guided")
    truth = TruthPreference(np.arange(9) % 3, "b-cubed").arrays(engine.view)
    before, value = engine.world, truth.sums.copy()
    jumps = engine.draw(Stream(5), 60, truth=truth)
    assert {jump.kind for jump in jumps} == {SPLIT, MERGE, MOVE}
    np.testing.assert_array_equal(engine.view.labels, before.labels)
    np.testing.assert_array_equal(truth.sums, value)
    judge = TruthPreference(np.arange(9) % 3, "b-cubed").watch(before)
    for jump in jumps:
        diff = Transfer(jump.items, jump.source, jump.target)
        assert jump.gain == pytest.approx(engine.kernel.model.gain(before, diff), abs=CLOSE)
        assert jump.better == pytest.approx(judge.gain(before, diff), abs=1e-12)
    doubled = engine.draw(Stream(5), 60, model_weights=2.0 * engine.kernel.model.weights)
    assert [jump.gain for jump in doubled] == pytest.approx([2 * jump.gain for jump in jumps])


def test_a_jump_that_is_taken_leads_where_its_diff_leads():
    engine = engine_for("everything", 9, SOME)
    truth = TruthPreference(np.arange(9) % 3, "pairwise").arrays(engine.view)
    for seed in range(12):
        (jump,) = engine.draw(Stream(seed), 1, truth=truth)
        world = engine.world.after(Transfer(jump.items, jump.source, jump.target))
        engine.take(jump, truth)
        np.testing.assert_array_equal(engine.view.labels, world.labels)
    assert engine.score == pytest.approx(engine.kernel.model.score(world), abs=CLOSE)
    fresh = TruthPreference(np.arange(9) % 3, "pairwise").arrays(world)
    np.testing.assert_array_equal(truth.sums, fresh.sums)
    assert_odds_are_kept(engine, tolerance=1e-4)


@pytest.mark.parametrize("accept", ["greedy", "truth"])
def test_of_several_jumps_the_one_with_the_highest_gain_is_considered(accept):
    engine, twin = (engine_for("few", 9, SOME) for _ in range(2))
    entities = TruthPreference(np.arange(9) % 3, "rand")
    truth, other = (entities.arrays(each.view) for each in (engine, twin))
    manner = Manner(accept, best_of=4)
    first, second = Stream(1), Stream(1)
    for _ in range(25):
        drawn = twin.draw(second, 4, truth=other)
        second.uniform()
        best = max(drawn, key=lambda jump: jump.gain)
        worth = (best.better, best.gain) if accept == "truth" else (best.gain,)
        taken = worth > (0.0,) * len(worth)
        assert engine.learn(first, manner, engine._resting, truth, 1, learning=False) == taken
        if taken:
            twin.take(best, other)
        np.testing.assert_array_equal(engine.view.labels, twin.view.labels)
        np.testing.assert_array_equal(first.state, second.state)
    assert engine.factors_seen == twin.factors_seen
    assert engine.view != SOME


def test_after_a_reset_everything_is_that_of_the_new_world():
    engine = engine_for("tables", 9)
    walk_freely(engine, Stream(0), 30)
    engine.reset(Partition.singletons(9))
    assert engine.score == pytest.approx(engine.kernel.model.score(Partition.singletons(9)))
    assert_odds_are_kept(engine)


def jumps_and_rows(engine, count=40):
    """Jumps of all kinds, and for each its chance by brute force at any weights: a list of (rows, chosen)."""
    features, world = engine.proposer.features, engine.world
    n = world.n_items
    clusters = {c: world.members(c).tolist() for c in world.cluster_ids().tolist()}
    found = []
    jumps = engine.draw(Stream(9), count)
    for jump in jumps:
        choices = []
        if jump.kind == MERGE:
            pairs = list(combinations(clusters, 2))
            rows = [features.between(clusters[a], clusters[b], n) for a, b in pairs]
            chosen = [{jump.source, jump.target} == set(pair) for pair in pairs].index(True)
            choices.append((np.array(rows), chosen, True))
        else:
            large = [c for c, members in clusters.items() if len(members) > 1]
            rows = [features.within(clusters[c], n) for c in large]
            choices.append((np.array(rows), large.index(jump.source), False))
        if jump.kind == MOVE:
            others = [c for c in clusters if c != jump.source]
            rows = [features.between(jump.items, clusters[c], n) for c in others]
            choices.append((np.array(rows), others.index(jump.target), True))
        found.append(choices)
    return jumps, found


def log_chance(choices, vector):
    half, total = len(vector) // 2, 0.0
    for rows, chosen, of_merge in choices:
        logits = rows @ (vector[half:] if of_merge else vector[:half])
        total += logits[chosen] - np.logaddexp.reduce(logits)
    return total


@pytest.fixture
def family_and_jumps():
    engine = engine_for("tables", 10, Partition.from_labels([0, 0, 0, 1, 1, 2, 3, 3, 3, 4]))
    jumps, rows = jumps_and_rows(engine)
    assert {jump.kind for jump in jumps} == {SPLIT, MERGE, MOVE}
    return JumpFamily(engine), jumps, rows


def test_the_family_knows_the_chance_of_every_choice(family_and_jumps):
    family, jumps, rows = family_and_jumps
    for seed in range(3):
        vector = np.random.default_rng(seed).normal(size=family.size)
        expected = [log_chance(choices, vector) for choices in rows]
        np.testing.assert_allclose(family.log_prob(vector, jumps), expected, rtol=1e-5, atol=2e-5)


def test_the_gradient_of_the_family_is_that_of_differences(family_and_jumps):
    """Rows are in single precision, so differences of their sums are good to three digits."""
    family, jumps, rows = family_and_jumps
    rng = np.random.default_rng(0)
    vector, shares = rng.normal(size=family.size), rng.dirichlet(np.ones(len(jumps)))
    gradient = family.log_prob_gradient(vector, jumps, shares)
    step = 1e-5
    for k in range(family.size):
        ends = []
        for sign in (1, -1):
            there = vector.copy()
            there[k] += sign * step
            ends.append(sum(s * log_chance(choices, there) for s, choices in zip(shares, rows, strict=True)))
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-5)
    direction = rng.normal(size=family.size)
    ends = [shares @ family.log_prob(vector + sign * 0.02 * direction, jumps) for sign in (1, -1)]
    assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / 0.04, rel=2e-3, abs=2e-3)


def test_the_likelihood_of_jumps_is_concave(family_and_jumps):
    family, jumps, _ = family_and_jumps
    shares, rng = np.full(len(jumps), 1 / len(jumps)), np.random.default_rng(1)
    for _ in range(5):
        start, end = rng.normal(scale=3.0, size=(2, family.size))
        along = [shares @ family.log_prob(start + t * (end - start), jumps) for t in np.linspace(0, 1, 7)]
        assert (np.diff(along, 2) < 1e-4).all()
        assert np.diff(along, 2).min() < -1e-3


def test_a_fit_stays_finite_where_a_feature_sets_all_good_jumps_apart():
    model = group_model([0, 0, 0, 1, 1, 1])
    engine = JumpEngine(Metropolis(model, AdaptiveSplitMerge(JumpFeatures(model))), Partition.singletons(6))
    family = JumpFamily(engine)
    good = [jump for jump in engine.draw(Stream(0), 60) if jump.gain > 0]
    shares = np.full(len(good), 1 / len(good))
    nothing = np.zeros(family.size)
    assert family.scales() == pytest.approx(
        np.maximum(np.concatenate([np.ones(family.width), family.between.var(axis=0)]), 1e-3), rel=1e-5
    )
    sizes = []
    for ridge in (1.0, 0.1, 0.01):
        fitted = family.fit(good, shares, nothing, ridge)
        assert np.isfinite(fitted).all()
        slope = family.log_prob_gradient(fitted, good, shares) - ridge * family.scales() * fitted
        assert np.abs(slope).max() < 1e-3
        sizes.append(np.abs(fitted).max())
    assert sizes[0] < sizes[1] < sizes[2] < 50.0
    same = engine.proposer.features.names.index(
        next(n for n in engine.proposer.features.names if "same" in n)
    )
    assert fitted[family.width + same] == pytest.approx(np.abs(fitted).max(), rel=0.2)
    drawn = family.sample(fitted, 200, Stream(3))
    assert np.mean([jump.gain > 0 for jump in drawn]) > 0.9


GROUPS = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]


def group_engine(labels=None, *, groups=GROUPS, kinds=(0.5, 0.5, 0.0), explore=0.1, **options):
    model = group_model(groups, **options)
    features = JumpFeatures(model)
    proposer = AdaptiveSplitMerge(features, JumpWeights.zero(features.names, kinds), explore=explore)
    start = Partition.singletons(len(groups)) if labels is None else Partition.from_keys(labels)
    return JumpEngine(Metropolis(model, proposer), start)


def share_of_good(engine, *, by="gain", truth=None):
    jumps = engine.draw(Stream(11), 400, truth=truth)
    return np.mean([getattr(jump, by) > 0 for jump in jumps])


@pytest.mark.parametrize("remember", [True, False])
@pytest.mark.parametrize("by", ["score", "truth"])
def test_tuning_concentrates_on_jumps_that_pay(by, remember):
    engine = group_engine()
    truth = TruthPreference(GROUPS, "rand").arrays(engine.view) if by == "truth" else None
    field = "better" if by == "truth" else "gain"
    assert share_of_good(engine, by=field, truth=truth) < 0.5
    found = tune(engine, Tuning(iterations=8, remember=remember), Stream(1), by=by, truth=truth)
    assert share_of_good(engine, by=field, truth=truth) > 0.85
    assert getattr(found.best, field) > 0
    assert engine.view == Partition.singletons(12)
    assert_odds_are_kept(engine)
    assert found.lesson.choices


def test_tuning_finds_the_one_cluster_that_is_mixed():
    labels = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    groups = [0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]
    engine = group_engine(labels, groups=groups)
    wrong = engine.view.cluster_of(0)

    def hits():
        splits = [jump for jump in engine.draw(Stream(8), 300) if jump.kind == SPLIT]
        return np.mean([jump.source == wrong for jump in splits])

    assert hits() < 0.4
    tune(engine, Tuning(iterations=10, samples=100), Stream(2))
    assert hits() > 0.7


def test_the_odds_of_the_kinds_are_learned_and_no_kind_dies_or_comes_to_life():
    engine = group_engine()  # nothing but merges is good
    tune(engine, SMALL_TUNING, Stream(0))
    split, merge, move = engine.weights.kinds
    assert move == 0.0
    assert merge / (split + merge) > 0.9
    assert split / (split + merge) >= 0.9 * SMALLEST_KIND
    fixed = group_engine(kinds=(1.0, 2.0, 1.0))
    tune(fixed, Tuning(iterations=2, kinds=False), Stream(0))
    np.testing.assert_allclose(np.array(fixed.weights.kinds) / sum(fixed.weights.kinds), [0.25, 0.5, 0.25])


def test_nothing_is_learned_where_all_jumps_are_equally_good():
    model = group_model([0, 0, 0, 0])
    model.weights[:] = 0.0
    engine = JumpEngine(Metropolis(model, AdaptiveSplitMerge(JumpFeatures(model))), Partition.singletons(4))
    tune(engine, Tuning(iterations=3, remember=False), Stream(0))
    assert not engine.weights.vector.any()


def decode_groups(groups=GROUPS, *, explore=0.1, kinds=(0.5, 0.5, 0.0), start=None, model=None, **options):
    model = model or group_model(groups)
    features = JumpFeatures(model)
    proposer = AdaptiveSplitMerge(features, JumpWeights.zero(features.names, kinds), explore=explore)
    world = Partition.singletons(len(groups)) if start is None else start
    if options.get("by") == "truth" and "truth" not in options:
        options["truth"] = TruthPreference(groups, "rand").arrays(world)
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
    truth = TruthPreference(GROUPS, "b-cubed").arrays(Partition.singletons(12))
    found = decode_groups(truth=truth)
    assert found.value == pytest.approx(1.0)
    assert found.trace[-1] == pytest.approx(found.score)


def test_tuning_many_weights_by_few_jumps_is_nothing_to_warn_of():
    """Warnings are errors here. The fits of a round are cut short, and the next one goes on."""
    world = Partition.from_keys(np.random.default_rng(0).integers(0, 12, 40))
    model, _, features = parts_of("tables", 40)
    truth = TruthPreference(np.arange(40) % 7, "b-cubed").arrays(world)
    options = {"by": "truth", "truth": truth, "jumps": 11, "progress": False}
    found = decode(model, world, AdaptiveSplitMerge(features), tuning=Tuning(iterations=4), **options)
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
    again = decode(model, Partition.singletons(12), proposer, tuning=None, patience=30, progress=False)
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


def document(groups, seed, *, judged=True):
    model = group_model(groups, seed=seed)
    start = Partition.singletons(len(groups))
    truth = TruthPreference(groups, "rand").arrays(start) if judged else None
    return TunedDocument(AdaptiveSplitMerge(JumpFeatures(model)), start, truth)


@pytest.mark.parametrize("judged", [True, False])
def test_weights_trained_on_some_documents_raise_the_chance_of_good_jumps_in_another(judged):
    documents = [document([0, 0, 0, 1, 1, 1, 2, 2], 1, judged=judged), document([0] * 4 + [1] * 5, 2)]
    weights = train_proposer(documents, tuning=SMALL_TUNING, seed=4, progress=False)
    again = train_proposer(documents, tuning=SMALL_TUNING, seed=4, progress=False)
    np.testing.assert_array_equal(weights.vector, again.vector)
    engine = group_engine(seed=9)
    before = share_of_good(engine)
    engine.weights = weights
    assert before < 0.5
    assert share_of_good(engine) > 0.8
    assert weights.kinds[MERGE] > 3 * weights.kinds[SPLIT] > 0


def test_training_where_nothing_can_be_improved_leaves_the_weights():
    one = document([0], 0)
    start = one.proposer.with_weights(weights_for(one.proposer.features, "moves too", 1.0))
    weights = train_proposer([TunedDocument(start, one.start)], tuning=SMALL_TUNING, progress=False)
    np.testing.assert_array_equal(weights.vector, start.learned.vector)


def adaptive(model):
    return AdaptiveSplitMerge(JumpFeatures(model))


FOUR = group_model([0, 0, 1, 1])
OTHER_NAMES = model_for("edges", 4)
APART = Partition.singletons(4)
BAD = {
    "features of another model": (
        lambda: JumpEngine(Metropolis(FOUR, adaptive(group_model([0, 0, 1, 1]))), APART),
        InvalidArgumentError,
        r"build JumpFeatures\(model\) of the model that is sampled",
    ),
    "another proposer": (
        lambda: JumpEngine(Metropolis(FOUR, PartitionMixture([Merge(), Split()])), APART),
        NoCompiledFormError,
        "PartitionMixture is no AdaptiveSplitMerge",
    ),
    "types": (
        lambda: JumpEngine(Metropolis(FOUR, adaptive(FOUR)), Partition.singletons(4, n_types=2)),
        InvalidArgumentError,
        "mix Merge, Split and RetypeCluster in a PartitionMixture",
    ),
    "guided parts with links": (
        lambda: engine_for("links", 5, parts="guided"),
        NoCompiledFormError,
        "leave it out, split uniformly, or run with engine='plain'",
    ),
    "weights for other features": (
        lambda: setattr(
            JumpEngine(Metropolis(FOUR, adaptive(FOUR)), APART),
            "weights",
            JumpWeights.zero(JumpFeatures(OTHER_NAMES).names),
        ),
        InvalidArgumentError,
        "choose the same features of models built alike",
    ),
    "contrastive divergence": (
        lambda: JumpEngine(Metropolis(FOUR, adaptive(FOUR)), APART).contrast(),
        NoCompiledFormError,
        "give a PartitionMixture, or learn with engine='plain'",
    ),
    "no truth to climb": (
        lambda: decode(FOUR, APART, adaptive(FOUR), by="truth"),
        InvalidArgumentError,
        "give truth=",
    ),
    "mixed with other moves": (
        lambda: PartitionMixture([adaptive(FOUR), Merge()]),
        InvalidArgumentError,
        "not a move that can be mixed",
    ),
    "a model for features": (
        lambda: AdaptiveSplitMerge(FOUR),
        InvalidArgumentError,
        "sees features, but Model was given",
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
    "no documents": (lambda: train_proposer([]), InvalidArgumentError, "give one or more documents"),
    "documents with other features": (
        lambda: train_proposer(
            [TunedDocument(adaptive(FOUR), APART), TunedDocument(adaptive(OTHER_NAMES), APART)],
            tuning=Tuning(iterations=1, samples=5),
            patience=1,
            progress=False,
        ),
        InvalidArgumentError,
        "choose the same features of models built alike",
    ),
    "no round": (lambda: Tuning(every=0), InvalidArgumentError, "every must be at least 1"),
    "no iterations": (lambda: Tuning(iterations=0), InvalidArgumentError, "iterations must be at least 1"),
    "no samples to tune by": (lambda: Tuning(samples=0), InvalidArgumentError, "samples must be at least 1"),
    "no elite": (lambda: Tuning(elite=0.0), InvalidArgumentError, "elite must be greater than 0"),
    "too large an elite": (lambda: Tuning(elite=1.1), InvalidArgumentError, "at most 1"),
    "no smoothing": (lambda: Tuning(smoothing=0.0), InvalidArgumentError, "smoothing must be greater than 0"),
    "a negative ridge": (lambda: Tuning(ridge=-1.0), InvalidArgumentError, "ridge must be zero or more"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_is_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build()


def test_guided_parts_with_links_walk_plainly():
    model, _, features = parts_of("links", 5)
    sampler = Metropolis(model, AdaptiveSplitMerge(features, parts="guided"))
    with pytest.warns(PlainEngineWarning, match="guided parts have no compiled form"):
        engine = make_engine(sampler, Partition.singletons(5), "auto")
    assert isinstance(engine, PlainEngine)
    uniform = Metropolis(model, AdaptiveSplitMerge(features))
    assert isinstance(make_engine(uniform, Partition.singletons(5), "auto"), JumpEngine)


def test_a_truth_that_does_not_fit_is_refused():
    table = PairTable.from_squares({"alike": np.eye(4)})
    model = Model([PairTableTemplate("pairs", table, ["count"])])
    proposer, start = AdaptiveSplitMerge(JumpFeatures(model)), Partition.singletons(4)
    for wrong in (TruthPreference([0, 0, 1], "b-cubed"), truth_arrays(np.zeros(3, np.int32), B_CUBED_F1)):
        with pytest.raises(ShapeError, match="tells of 3 items, but the world has 4"):
            decode(model, start, proposer, by="truth", truth=wrong, progress=False)
    nobody = TruthPreference([None] * 4, "b-cubed")
    with pytest.raises(InvalidArgumentError, match="no truth to climb by"):
        decode(model, start, proposer, by="truth", truth=nobody, progress=False)


def test_lessons_are_kept_for_training_alone():
    table = PairTable.from_squares({"alike": np.ones((4, 4))})
    model = Model([PairTableTemplate("pairs", table, ["count"])], [1.0])
    for keep in (False, True):
        engine = JumpEngine(
            Metropolis(model, AdaptiveSplitMerge(JumpFeatures(model))), Partition.singletons(4)
        )
        climb = Climb(engine, "score", None, Stream(0), keep_lessons=keep)
        climb.run(3, Tuning(every=1, iterations=2, samples=9), jumps=2, patience=9)
        assert len(climb.lessons) == 2 * keep
