"""Diagnostics of chains: what ArviZ is given, and what it says."""

import sys
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import factorwise as fw
from assignment_cases import CASES
from factorwise import mcmc
from factorwise.errors import MissingExtraError
from partition_cases import model_of

PAIRS = list(combinations(range(5), 2))
SINGLETONS = fw.Partition.singletons(5)


def clustering():
    moves = mcmc.PartitionMixture([mcmc.RelocateToItem(), mcmc.RelocateToNew()])
    return mcmc.Metropolis(model_of(("numbers", "sizes"), 5), moves)


def labeling():
    variables, model = CASES["loop"]()
    return mcmc.Gibbs(model), fw.Assignment.initial(variables)


def test_diagnostics_tell_chains_that_agree_from_chains_that_do_not():
    samples = fw.sample(clustering(), SINGLETONS, draws=500, thin=10, burn_in=100, pairs=PAIRS)
    assert 0.99 < mcmc.r_hat(samples) < 1.02
    assert 100 < mcmc.effective_sample_size(samples) < 4_000
    assert (mcmc.pair_effective_sample_size(samples) > 100).all()
    apart = replace(samples, scores=samples.scores + 10.0 * np.arange(4)[:, None])
    assert mcmc.r_hat(apart) > 2.0
    assert mcmc.effective_sample_size(apart) < 20


def test_a_pair_that_never_changed_has_no_effective_sample_size():
    samples = fw.sample(clustering(), SINGLETONS, draws=100, thin=5, pairs=[(0, 0), (0, 1)])
    sizes = mcmc.pair_effective_sample_size(samples)
    assert np.isnan(sizes[0])
    assert sizes[1] > 0


def test_chains_that_stand_still_are_told_apart_without_a_warning():
    samples = fw.sample(clustering(), SINGLETONS, draws=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(mcmc.r_hat(replace(samples, scores=np.ones((4, 10)))))
        heights = np.arange(4.0)[:, None]
        assert mcmc.r_hat(replace(samples, scores=np.ones((4, 10)) * heights)) == np.inf


def test_arviz_gets_every_draw_with_the_pairs_by_name():
    samples = fw.sample(clustering(), SINGLETONS, draws=20, chains=3, pairs=[(0, 1), (2, 4)])
    posterior = mcmc.to_arviz(samples).posterior
    assert set(posterior.data_vars) == {"score", "n_clusters", "together"}
    assert dict(posterior.sizes) == {"chain": 3, "draw": 20, "pair": 2}
    assert posterior["pair"].values.tolist() == ["0-1", "2-4"]
    np.testing.assert_array_equal(posterior["score"], samples.scores)
    np.testing.assert_array_equal(posterior["together"], samples.together)


def test_arviz_gets_the_scores_of_labelings():
    kernel, world = labeling()
    posterior = mcmc.to_arviz(fw.sample(kernel, world, draws=20)).posterior
    assert set(posterior.data_vars) == {"score"}


def test_diagnostics_without_arviz_say_what_to_install(monkeypatch):
    samples = fw.sample(clustering(), SINGLETONS, draws=4)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'factorwise\[diagnostics\]'"):
        mcmc.r_hat(samples)


def test_arviz_from_version_1_on_gets_groups_by_name(monkeypatch):
    class NewArviz:
        __version__ = "1.3.0"

        @staticmethod
        def from_dict(data, *, dims, coords):
            return data, dims, coords

    samples = fw.sample(clustering(), SINGLETONS, draws=4, pairs=[(0, 1)])
    monkeypatch.setitem(sys.modules, "arviz", NewArviz)
    data, dims, coords = mcmc.to_arviz(samples)
    assert set(data["posterior"]) == {"score", "n_clusters", "together"}
    assert dims == {"together": ["pair"]}
    assert coords == {"pair": ["0-1"]}


def test_draws_become_tables_and_labeled_arrays():
    samples = fw.sample(clustering(), SINGLETONS, draws=5, chains=2, pairs=[(0, 1), (2, 4)])
    frame = mcmc.to_pandas(samples)
    assert frame.columns.tolist() == ["chain", "draw", "score", "n_clusters", "0-1", "2-4"]
    np.testing.assert_array_equal(frame["score"], samples.scores.ravel())
    np.testing.assert_array_equal(frame[frame["chain"] == 1]["2-4"], samples.together[1, :, 1])
    data = mcmc.to_xarray(samples)
    assert dict(data.sizes) == {"chain": 2, "draw": 5, "pair": 2}
    np.testing.assert_array_equal(data["together"].sel(pair="2-4"), samples.together[:, :, 1])
    kernel, world = labeling()
    drawn = fw.sample(kernel, world, draws=5)
    np.testing.assert_array_equal(mcmc.to_xarray(drawn)["probability"], drawn.label_marginals())
