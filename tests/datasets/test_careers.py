"""Mentions per author."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.datasets.careers import career_law, career_lengths

LAWS = [career_law(scale) for scale in (1.0, 20.0, 220.0, 5_000.0)]


@pytest.mark.parametrize("scale", [1.0, 20.0, 220.0, 2000.0])
def test_the_law_is_the_power_with_a_cut_off(scale):
    law = career_law(scale).probability
    assert law.sum() == pytest.approx(1)
    k = np.arange(1, min(len(law), 30))
    np.testing.assert_allclose(law[k - 1] / law[k], ((k + 1) / k) ** 1.9 * np.exp(1 / scale))


def test_what_follows_from_the_law_is_what_very_many_careers_have():
    law = career_law()
    lengths = career_lengths(4_000_000, law)
    assert lengths.mean() == pytest.approx(law.mean, rel=1e-3)
    assert (lengths == 1).mean() == pytest.approx(law.singletons, rel=1e-3)
    top = lengths[-round(len(lengths) / 100) :].sum() / lengths.sum()
    assert top == pytest.approx(law.top_share, rel=1e-3)


def test_the_law_of_real_bibliographies_is_in_the_ranges_measured_on_them():
    law = career_law()
    assert 3.6 < law.mean < 5.4
    assert 0.52 < law.singletons < 0.59
    assert 0.22 < law.top_share < 0.27


@given(mentions=st.integers(1, 20_000), law=st.sampled_from(LAWS))
def test_careers_add_up_to_the_mentions_wanted(mentions, law):
    lengths = career_lengths(mentions, law)
    assert lengths.sum() == mentions
    assert lengths[0] >= 1
    assert (np.diff(lengths) >= 0).all()


def test_a_larger_scale_makes_clusters_of_thousands():
    assert career_lengths(1_000_000, career_law()).max() < 2_000
    lengths = career_lengths(1_000_000, career_law(2_000))
    assert 2 <= (lengths > 2_000).sum() <= 100
