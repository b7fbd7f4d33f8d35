"""Generate author mentions of a bibliography, with known truth.

A mention is a name on a paper, with the names of the co-authors, the venue, the year and the title. The steps
are: the number of mentions of each author (`careers`), the authors' names (`names`) and other spellings of
them (`spellings`), co-authors and times (`papers`), venues and words of titles (`topics`), and checks of the
statistics of the result (`targets`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from factorwise.datasets.careers import SCALE, career_law, career_lengths
from factorwise.datasets.inventory import NameLists
from factorwise.datasets.names import draw_names, name_table, solve_laws
from factorwise.datasets.papers import Papers, arrange_papers
from factorwise.datasets.spellings import Spellings, use_spellings, write_names
from factorwise.datasets.targets import Statistic, measure
from factorwise.datasets.topics import Topics, draw_topics
from factorwise.errors import FactorwiseError, require
from factorwise.types import Ints
from factorwise.validation import check_count

_MOST = 50_000_000
_ROWS = 500_000  # rows of a piece of the table: its texts must stay below two gigabytes
_NAMES, _SPELLINGS, _PAPERS, _TOPICS, _LABELS = range(5)  # streams of random numbers


class OffTargetError(FactorwiseError):
    """The statistics of generated data are outside their ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsConfig:
    """How many mentions to generate, and how.

    mentions
        Number of rows of the table.
    seed
        The same seed and the same lists of names give the same table.
    largest_scale
        Cut-off of the distribution of careers, p(k) ~ k^-1.9 exp(-k / scale). The default fits real
        bibliographies; with 2,000, a few authors have thousands of mentions.
    """

    mentions: int
    seed: int = 0
    largest_scale: float = SCALE

    def __post_init__(self) -> None:
        require(1 <= self.mentions <= _MOST, "mentions", self.mentions, f"from 1 to {_MOST:,}")
        check_count("seed", self.seed, 0)
        require(1 <= self.largest_scale <= 100_000, "largest_scale", self.largest_scale, "from 1 to 100,000")


@dataclass(frozen=True, slots=True)
class AuthorMentions:
    """Generated mentions.

    entity
        The entity number of each author, unrelated to size or culture.
    used
        Spelling of each mention.
    """

    papers: Papers
    spellings: Spellings
    topics: Topics
    entity: Ints
    used: Ints
    statistics: tuple[Statistic, ...]

    def __len__(self) -> int:
        """Return the number of mentions."""
        return len(self.used)

    def check(self) -> None:
        """Raise `OffTargetError` if a binding statistic is out of its range."""
        off = [statistic for statistic in self.statistics if statistic.binding and not statistic.met]
        if off:
            named = "; ".join(
                f"{statistic.name} is {statistic.value:.4g}, but must be between {statistic.low:.4g}"
                f" and {statistic.high:.4g}"
                for statistic in off
            )
            raise OffTargetError(
                f"the statistics of the mentions are out of range: {named}. Use another seed."
            )

    def table(self) -> pa.Table:
        """Return the mentions as a table, ordered by paper, in pieces."""
        paper = self.papers.paper()
        position = np.arange(len(self)) - self.papers.start[paper]
        return pa.concat_tables(
            self._rows(begin, paper[begin : begin + _ROWS], position[begin : begin + _ROWS])
            for begin in range(0, len(self), _ROWS)
        )

    def _rows(self, begin: int, paper: Ints, position: Ints) -> pa.Table:
        rows = np.arange(begin, begin + len(paper))
        coauthors, counts = self.papers.others(rows)
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        name = self.spellings.name
        return pa.table(
            {
                "id": rows,
                "entity": self.entity[self.papers.author[rows]],
                "name": name.take(pa.array(self.used[rows])),
                "coauthors": pa.ListArray.from_arrays(offsets, name.take(pa.array(self.used[coauthors]))),
                "venue": self.topics.venues.take(pa.array(self.topics.venue[paper])),
                "year": self.papers.year[paper].astype(np.int16),
                "title": self.topics.title.take(pa.array(paper)),
                "paper": paper,
                "position": position.astype(np.int16),
            }
        )


def generate_authors(config: AuthorsConfig, lists: Sequence[NameLists]) -> AuthorMentions:
    """Generate mentions, with names drawn from ``lists``, as `load_inventory` returns them."""
    law = career_law(config.largest_scale)
    careers = career_lengths(config.mentions, law)
    table = name_table(lists)
    laws = solve_laws(table, len(careers))
    names = draw_names(_stream(config, _NAMES), table, len(careers), laws)
    rng = _stream(config, _SPELLINGS)
    spellings = write_names(rng, table, names, laws, careers)
    by_author = use_spellings(rng, spellings, careers)
    papers = arrange_papers(_stream(config, _PAPERS), careers)
    topics = draw_topics(_stream(config, _TOPICS), papers)
    first = np.cumsum(careers) - careers
    used = by_author[first[papers.author] + papers.turn]
    venue = topics.venue[papers.paper()]
    statistics = measure(careers, papers, spellings, used, venue, law, config.largest_scale)
    entity = _stream(config, _LABELS).permutation(len(careers))
    return AuthorMentions(papers, spellings, topics, entity, used, statistics)


def _stream(config: AuthorsConfig, part: int) -> np.random.Generator:
    """Return the random numbers of one step, independent of the draws of other steps."""
    return np.random.default_rng([config.seed, part])
