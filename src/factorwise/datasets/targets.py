"""Statistics of generated mentions, and the ranges in which they should be.

Ranges were measured on real bibliographies, or are a measured number with our margin: a fifth for the kinds
of variants, a tenth for authors per paper, 0.05 for co-authors. The range of the largest last name and
initial is ours. The generator was tuned until it met them. They apply if there are enough mentions, because a
thousand mentions depend on chance. With another cut-off of careers than the one of real bibliographies,
statistics of careers must be within a tenth of their distribution, and the others do not apply.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from factorwise.datasets.careers import SCALE, CareerLaw
from factorwise.datasets.papers import Papers
from factorwise.datasets.spellings import KINDS, Spellings
from factorwise.datasets.texts import joined
from factorwise.types import Bools, Ints

ENOUGH = 100_000  # mentions from which on the ranges apply; fewer depend on chance
_LARGEST_KEY = ((1_000_000, 100, 999), (0, 10, 400))  # persons, from this many mentions on
_SLACK = 0.1  # margin for statistics of another distribution
_SAMPLE = 100_000  # authors whose papers are examined
_REPEATED = 3  # mentions of authors who could be found by their co-authors
_SPELT = 5  # mentions of authors whose spellings are counted


class Statistic(NamedTuple):
    """A number, and the range it should be in.

    value
        NaN if there was nothing to count.
    binding
        Whether data are refused if the number is out of its range.
    """

    name: str
    value: float
    low: float
    high: float
    binding: bool = True

    @property
    def met(self) -> bool:
        """Whether the number is in its range."""
        return self.low <= self.value <= self.high


def measure(
    careers: Ints,
    papers: Papers,
    spellings: Spellings,
    used: Ints,
    venue: Ints,
    law: CareerLaw,
    scale: float,
) -> tuple[Statistic, ...]:
    """Measure all statistics that have a range.

    used
        Spelling of each mention.
    venue
        Of each mention.
    """
    enough = len(used) >= ENOUGH
    about_careers = _careers(careers, law, scale)
    neighbors = [
        Statistic("authors per paper", float(papers.sizes.mean()), 2.7, 3.3),
        *_names(spellings, used),
        *_variants(careers, spellings, used),
        Statistic("mentions that share a co-author", _coauthors(careers, papers), 0.70, 0.80),
        Statistic("two mentions share the venue", _venues(careers, papers.author, venue), 0.1, 0.3),
    ]
    return (
        *(statistic._replace(binding=enough) for statistic in about_careers),
        *(statistic._replace(binding=enough and scale == SCALE) for statistic in neighbors),
    )


def _careers(careers: Ints, law: CareerLaw, scale: float) -> list[Statistic]:
    top = np.sort(careers)[-max(1, round(len(careers) / 100)) :]
    values = {
        "mentions per author": (float(careers.mean()), law.mean, 3.6, 5.4),
        "authors with one mention": (float((careers == 1).mean()), law.singletons, 0.52, 0.59),
        "mentions of the top 1 %": (float(top.sum() / careers.sum()), law.top_share, 0.22, 0.27),
    }
    return [
        Statistic(name, value, low, high)
        if scale == SCALE
        else Statistic(name, value, target * (1 - _SLACK), target * (1 + _SLACK))
        for name, (value, target, low, high) in values.items()
    ]


def _names(spellings: Spellings, used: Ints) -> list[Statistic]:
    """Measure how often authors share names, as written."""
    written = np.flatnonzero(np.bincount(used, minlength=len(spellings.author)))
    who = spellings.author[written]
    rows = pa.array(written)
    full = _persons(spellings.name.take(rows), who)
    initial = _persons(joined(spellings.last.take(rows), spellings.initial.take(rows)), who)
    weight = np.bincount(used, minlength=len(spellings.author))[written] / len(used)
    low, high = next((low, high) for least, low, high in _LARGEST_KEY if len(used) >= least)
    return [
        Statistic("mentions that share the full name", float(weight @ (full > 1)), 0.08, 0.12),
        Statistic("mentions that share last name and initial", float(weight @ (initial > 1)), 0.47, 0.53),
        Statistic("persons of the largest last name and initial", float(initial.max()), low, high),
    ]


def _persons(keys: pa.StringArray, who: Ints) -> Ints:
    """Return for each key the number of persons who have it."""
    code = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    pairs = np.unique(code * (who.max() + 1) + who)
    persons: Ints = np.bincount(pairs // (who.max() + 1))[code]
    return persons


def _variants(careers: Ints, spellings: Spellings, used: Ints) -> list[Statistic]:
    text = spellings.name.dictionary_encode().indices.to_numpy().astype(np.int64)
    written = np.bincount(used, minlength=len(text)) > 0
    pairs = np.unique(spellings.author[written] * len(text) + text[written])
    different = np.bincount(pairs // len(text), minlength=len(careers))
    many = careers >= _SPELT
    several = float((different[many] > 1).mean()) if many.any() else float("nan")
    variant = written & (spellings.kind >= 0) & (text != text[spellings.author])
    kinds = np.bincount(spellings.kind[variant], minlength=len(KINDS)) / max(1, variant.sum())
    return [
        Statistic("authors of five or more with several spellings", several, 0.4, 0.6),
        *(
            Statistic(f"variants: {name}", float(kinds[number]), 0.8 * share, 1.2 * share)
            for number, (name, share) in enumerate(KINDS.items())
        ),
    ]


def _coauthors(careers: Ints, papers: Papers) -> float:
    """Return the share of mentions with a co-author whom their author has on another paper, too.

    Only authors with three or more mentions count, and the papers of a sample of them are examined.
    """
    able = np.flatnonzero(careers >= _REPEATED)
    chosen = np.zeros(len(careers), dtype=np.bool_)
    chosen[able[:: max(1, len(able) // _SAMPLE)]] = True
    mentions = np.flatnonzero(chosen[papers.author])
    neighbors, counts = papers.others(mentions)
    mention = np.repeat(np.arange(len(mentions)), counts)
    pair = papers.author[mentions][mention] * len(careers) + papers.author[neighbors]
    again = _repeated(pair)
    shared = np.bincount(mention[again], minlength=len(mentions)) > 0
    return float(shared.mean()) if len(shared) else float("nan")


def _repeated(key: Ints) -> Bools:
    _, group, count = np.unique(key, return_inverse=True, return_counts=True)
    repeated: Bools = count[group] > 1
    return repeated


def _venues(careers: Ints, author: Ints, venue: Ints) -> float:
    """Return the probability that two random mentions of one author share the venue."""
    pair = author * (venue.max() + 1) + venue
    distinct, count = np.unique(pair, return_counts=True)
    length = careers[distinct // (venue.max() + 1)]
    able = length > 1
    same = (count * (count - 1) / np.maximum(length - 1, 1))[able]
    mentions = careers[careers > 1].sum()
    return float(same.sum() / mentions) if mentions else float("nan")
