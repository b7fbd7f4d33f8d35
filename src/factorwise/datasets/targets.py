"""What generated mentions look like in numbers, and what they should look like.

Ranges were measured on real bibliographies, or are a measured number with a margin of ours: a fifth for the
kinds of variants, a tenth for authors per paper, 0.05 for co-authors; those of the largest last name and
initial are ours. The generator was tuned until it met them. They bind where there are enough mentions: of a
thousand mentions, chance decides. With another cut-off of careers than the one that fits real ones, those
of careers are what its law says, to a tenth of it, and the others do not bind.
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

ENOUGH = 100_000  # mentions from which on the ranges are to be met; chance decides below
_LARGEST_KEY = ((1_000_000, 100, 999), (0, 10, 400))  # persons, from so many mentions on
_SLACK = 0.1  # of what another law says
_SAMPLE = 100_000  # authors whose papers are looked through
_REPEATED = 3  # mentions of authors who could be found by their co-authors
_SPELT = 5  # mentions of authors whose spellings are counted


class Statistic(NamedTuple):
    """A number, and the range it should be in.

    value
        NaN where there was nothing to count.
    binding
        Whether data with the number out of its range are to be refused.
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
    """Measure everything that has a target.

    used
        Spelling of each mention.
    venue
        Of each mention.
    """
    enough = len(used) >= ENOUGH
    about_careers = _careers(careers, law, scale)
    others = [
        Statistic("authors per paper", float(papers.sizes.mean()), 2.7, 3.3),
        *_names(spellings, used),
        *_variants(careers, spellings, used),
        Statistic("mentions that share a co-author", _coauthors(careers, papers), 0.70, 0.80),
        Statistic("two mentions share the venue", _venues(careers, papers.author, venue), 0.1, 0.3),
    ]
    return (
        *(one._replace(binding=enough) for one in about_careers),
        *(one._replace(binding=enough and scale == SCALE) for one in others),
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
        else Statistic(name, value, said * (1 - _SLACK), said * (1 + _SLACK))
        for name, (value, said, low, high) in values.items()
    ]


def _names(spellings: Spellings, used: Ints) -> list[Statistic]:
    """How often names are shared between authors, as written."""
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
    """Of each key, how many persons have it."""
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
            Statistic(f"variants: {name}", float(kinds[place]), 0.8 * share, 1.2 * share)
            for place, (name, share) in enumerate(KINDS.items())
        ),
    ]


def _coauthors(careers: Ints, papers: Papers) -> float:
    """Share of mentions with a co-author whom their author has on another paper, too.

    Of authors with three or more mentions; the papers of a sample of them are looked through.
    """
    able = np.flatnonzero(careers >= _REPEATED)
    chosen = np.zeros(len(careers), dtype=np.bool_)
    chosen[able[:: max(1, len(able) // _SAMPLE)]] = True
    mentions = np.flatnonzero(chosen[papers.author])
    others, counts = papers.others(mentions)
    mention = np.repeat(np.arange(len(mentions)), counts)
    pair = papers.author[mentions][mention] * len(careers) + papers.author[others]
    again = _repeated(pair)
    shared = np.bincount(mention[again], minlength=len(mentions)) > 0
    return float(shared.mean()) if len(shared) else float("nan")


def _repeated(key: Ints) -> Bools:
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    repeated: Bools = count[place] > 1
    return repeated


def _venues(careers: Ints, author: Ints, venue: Ints) -> float:
    """Chance that a mention and another one of the same author, both drawn at random, share the venue."""
    pair = author * (venue.max() + 1) + venue
    distinct, count = np.unique(pair, return_counts=True)
    length = careers[distinct // (venue.max() + 1)]
    able = length > 1
    same = (count * (count - 1) / np.maximum(length - 1, 1))[able]
    mentions = careers[careers > 1].sum()
    return float(same.sum() / mentions) if mentions else float("nan")
