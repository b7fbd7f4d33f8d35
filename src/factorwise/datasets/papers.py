"""Co-authors and times of papers.

Authors work in labs, and labs belong to communities. A lab has a time line from 0 to 1. An author is active
for a stretch of it in proportion to the author's career, over which the mentions are spread about evenly. The
mentions of a lab in order of time, cut into papers, are its papers. So at any time a few authors are active
in a lab and write together repeatedly, some for long and most of them briefly. A few mentions occur in
another lab of the community, or anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.types import Bools, Floats, Ints

FIRST_YEAR, LAST_YEAR = 1970, 2024
_SMALLEST_LAB, _LARGEST_LAB = 60.0, 1000.0  # mentions; the largest is larger if a career needs it
_LAB_EXPONENT = 1.1
_LAB_PER_CAREER = 5  # a lab has at least this many times the mentions of its most prolific author
_LABS_PER_COMMUNITY = 25
_ACTIVE = (4.0, 9.0)  # mentions of a lab per mention of an active author: least and most
_VISITS = 0.11  # mentions in another lab of the community
_LEAPS = 0.01  # mentions anywhere
_AUTHORS = np.array([0.125, 0.26, 0.28, 0.17, 0.09, 0.042, 0.02, 0.013])  # of papers with 1, 2, ... authors
_ROUNDS = 2  # rounds that move an author who occurs twice on a paper to the next one


class Papers(NamedTuple):
    """Mentions in order of their papers, and the papers.

    author, turn
        The author of each mention, and its number among that author's mentions in order of time.
    start
        First mention of each paper, and the end of the last: int64[papers + 1].
    lab, year
        Lab and year of each paper.
    community
        Community of each lab.
    """

    author: Ints
    turn: Ints
    start: Ints
    lab: Ints
    year: Ints
    community: Ints

    @property
    def sizes(self) -> Ints:
        """Number of authors of each paper."""
        return np.diff(self.start)

    def paper(self) -> Ints:
        """Return the paper of each mention."""
        return np.repeat(np.arange(len(self.lab)), self.sizes)

    def others(self, mentions: Ints) -> tuple[Ints, Ints]:
        """Return the other mentions on the papers of given ones, concatenated, and their number for each."""
        paper = np.searchsorted(self.start, mentions, side="right") - 1
        counts = self.sizes[paper] - 1
        ends = np.cumsum(counts)
        number = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
        own = np.repeat(mentions - self.start[paper], counts)
        return np.repeat(self.start[paper], counts) + number + (number >= own), counts


def arrange_papers(rng: np.random.Generator, careers: Ints) -> Papers:
    """Place careers, shortest first, in labs and cut their mentions into papers, in random order."""
    capacity = _lab_sizes(int(careers.sum()), int(careers.max()))
    community = rng.integers(0, max(1, len(capacity) // _LABS_PER_COMMUNITY), len(capacity))
    home = _homes(rng, careers, capacity)
    author = np.repeat(np.arange(len(careers)), careers)
    turn = np.arange(len(author)) - np.repeat(np.cumsum(careers) - careers, careers)
    time = _times(rng, careers, home, author, turn, len(capacity))
    lab = _visits(rng, home[author], community)
    order = np.argsort(lab + time, kind="stable")
    author, turn, lab, time = author[order], turn[order], lab[order], time[order]
    paper, labs = _separated(*_cut(rng, lab), author, lab)
    year = _years(rng, paper, labs, time, len(capacity))
    return _shuffled(rng, author, turn, paper, labs, year, community)


def _lab_sizes(mentions: int, longest: int) -> Floats:
    """Return the sizes of labs in mentions, largest first: quantiles of a power law between two ends."""
    largest = max(_LARGEST_LAB, (_LAB_PER_CAREER + 1.0) * longest)

    def quantiles(count: int) -> Floats:
        at = (np.arange(count) + 0.5) / count
        low, high = _SMALLEST_LAB**-_LAB_EXPONENT, largest**-_LAB_EXPONENT
        sizes: Floats = (high + at * (low - high)) ** (-1 / _LAB_EXPONENT)
        return sizes

    sizes = quantiles(max(1, round(mentions / float(quantiles(10_000).mean()))))
    sizes[0] = max(sizes[0], largest)
    return sizes


def _homes(rng: np.random.Generator, careers: Ints, capacity: Floats) -> Ints:
    """Return the lab of each author, drawn by size among the labs that are large enough."""
    enough = np.searchsorted(-capacity, -_LAB_PER_CAREER * careers, side="right")
    total = np.cumsum(capacity)
    draw = rng.random(len(careers)) * total[np.maximum(enough, 1) - 1]
    lab: Ints = np.minimum(np.searchsorted(total, draw, side="right"), len(capacity) - 1)
    return lab


def _times(
    rng: np.random.Generator, careers: Ints, home: Ints, author: Ints, turn: Ints, labs: int
) -> Floats:
    """Return the time of each mention, from 0 to below 1."""
    held = np.bincount(home, careers, labs)
    width = np.minimum(rng.uniform(*_ACTIVE, len(careers)) * careers / held[home], 1.0)
    begin = rng.random(len(careers)) * (1 - width)
    within = (turn + rng.random(len(author))) / careers[author]
    time: Floats = np.minimum(begin[author] + within * width[author], 1 - 1e-9)
    return time


def _visits(rng: np.random.Generator, lab: Ints, community: Ints) -> Ints:
    """Return the labs of mentions after some moved to another lab."""
    draw = rng.random(len(lab))
    near, far = np.flatnonzero(draw < _VISITS), np.flatnonzero(draw >= 1 - _LEAPS)
    by_community = np.argsort(community, kind="stable")
    bounds = np.searchsorted(community[by_community], np.arange(community.max() + 2))
    first, last = bounds[community[lab[near]]], bounds[community[lab[near]] + 1]
    lab = lab.copy()
    lab[near] = by_community[first + (rng.random(len(near)) * (last - first)).astype(np.int64)]
    lab[far] = rng.integers(0, len(community), len(far))
    return lab


def _cut(rng: np.random.Generator, lab: Ints) -> tuple[Ints, Ints]:
    """Return the paper of each mention, given in order of lab and time, and the lab of each paper."""
    sizes = rng.choice(len(_AUTHORS), len(lab), p=_AUTHORS / _AUTHORS.sum()) + 1
    count = int(np.searchsorted(np.cumsum(sizes), len(lab))) + 1
    number = np.repeat(np.arange(count), sizes[:count])[: len(lab)]
    begins = np.ones(len(lab), dtype=np.bool_)
    begins[1:] = (number[1:] != number[:-1]) | (lab[1:] != lab[:-1])
    return np.cumsum(begins) - 1, lab[begins]


def _separated(paper: Ints, labs: Ints, author: Ints, lab: Ints) -> tuple[Ints, Ints]:
    """Return papers on which no author occurs twice.

    A second mention moves to the next paper, or to a new one.
    """
    for _ in range(_ROUNDS):
        twice = np.flatnonzero(_second(paper, author))
        following = np.minimum(paper[twice] + 1, len(labs) - 1)
        stays = labs[following] == lab[twice]
        paper[twice[stays]] = following[stays]
    twice = np.flatnonzero(_second(paper, author))
    paper[twice] = len(labs) + np.arange(len(twice))
    return paper, np.concatenate([labs, lab[twice]])


def _second(paper: Ints, author: Ints) -> Bools:
    """Whether an earlier mention of the same author is on the same paper."""
    key = paper * (author.max() + 1) + author
    order = np.argsort(key, kind="stable")
    again = np.zeros(len(key), dtype=np.bool_)
    again[order[1:]] = key[order[1:]] == key[order[:-1]]
    return again


def _years(rng: np.random.Generator, paper: Ints, labs: Ints, time: Floats, count: int) -> Ints:
    """Return the year of each paper; labs begin at different times and grow."""
    begin = FIRST_YEAR + rng.random(count) ** 0.7 * 35
    sizes = np.bincount(paper, minlength=len(labs))
    mean = np.bincount(paper, time, len(labs)) / np.maximum(sizes, 1)
    return (begin[labs] + mean**0.6 * (LAST_YEAR + 1 - begin[labs])).astype(np.int64)


def _shuffled(
    rng: np.random.Generator,
    author: Ints,
    turn: Ints,
    paper: Ints,
    labs: Ints,
    year: Ints,
    community: Ints,
) -> Papers:
    """Number the papers at random, drop those without authors, and shuffle the authors of each."""
    sizes = np.bincount(paper, minlength=len(labs))
    kept = rng.permutation(np.flatnonzero(sizes))
    number = np.empty(len(labs), dtype=np.int64)
    number[kept] = np.arange(len(kept))
    order = np.argsort(number[paper] + rng.random(len(paper)), kind="stable")
    start = np.concatenate([[0], np.cumsum(sizes[kept])])
    return Papers(author[order], turn[order], start, labs[kept], year[kept], community)
