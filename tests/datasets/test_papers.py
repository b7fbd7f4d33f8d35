"""Papers and co-authors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.datasets.careers import career_law, career_lengths
from factorwise.datasets.papers import FIRST_YEAR, LAST_YEAR, arrange_papers


def arranged(mentions, seed=0, scale=220.0):
    careers = career_lengths(mentions, career_law(scale))
    return careers, arrange_papers(np.random.default_rng(seed), careers)


@given(mentions=st.integers(1, 3_000), seed=st.integers(0, 9), scale=st.sampled_from([2.0, 220.0, 5_000.0]))
def test_all_mentions_are_on_papers_and_nobody_is_on_one_twice(mentions, seed, scale):
    careers, papers = arranged(mentions, seed, scale)
    np.testing.assert_array_equal(np.bincount(papers.author, minlength=len(careers)), careers)
    assert papers.start[0] == 0
    assert papers.start[-1] == mentions
    assert papers.sizes.min() >= 1
    assert len(set(zip(papers.paper().tolist(), papers.author.tolist(), strict=True))) == mentions


def test_turns_number_the_mentions_of_an_author_from_zero():
    careers, papers = arranged(5_000)
    order = np.lexsort((papers.turn, papers.author))
    expected = np.concatenate([np.arange(length) for length in careers])
    np.testing.assert_array_equal(papers.turn[order], expected)


def test_others_are_the_rest_of_the_paper():
    _, papers = arranged(400)
    mentions = np.array([0, 399, 17, 18, 19, 200])
    others, counts = papers.others(mentions)
    paper = papers.paper()
    expected = [[m for m in range(400) if paper[m] == paper[one] and m != one] for one in mentions]
    assert counts.tolist() == [len(rest) for rest in expected]
    assert others.tolist() == [m for rest in expected for m in rest]


def test_years_are_in_range_and_careers_go_forward_in_time():
    careers, papers = arranged(30_000)
    assert papers.year.min() >= FIRST_YEAR
    assert papers.year.max() <= LAST_YEAR
    year = papers.year[papers.paper()]
    longest = papers.author == len(careers) - 1
    assert np.corrcoef(papers.turn[longest], year[longest])[0, 1] > 0.5


def test_rows_tell_nothing_of_authors():
    _, papers = arranged(30_000)
    assert abs(np.corrcoef(np.arange(30_000), papers.author)[0, 1]) < 0.03
    again = (papers.author[1:] == papers.author[:-1]).mean()
    assert again < 0.01


@pytest.mark.parametrize("scale", [220.0, 2_000.0])
def test_even_the_longest_career_is_mostly_on_papers_with_others(scale):
    careers, papers = arranged(100_000, scale=scale)
    sizes = papers.sizes[papers.paper()]
    assert (sizes[papers.author == len(careers) - 1] > 1).mean() > 0.8
