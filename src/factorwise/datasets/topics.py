"""Venues and titles of papers, from the venues and words of communities and labs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.datasets.papers import Papers
from factorwise.types import Floats, Ints

_STEMS = """
access action agent algebra alignment allocation analysis annotation array attack attention auction
authentication automaton bandwidth behavior boundary browser buffer cache calculus camera channel circuit
classifier cluster code cognition compiler complexity compression computation concept concurrency
constraint contract control convolution corpus correction cost crowd crypto curve database decision
decoder defect demand density dependency deployment design detection device diagnosis dialogue diffusion
discourse display distance document domain drone dynamics edge embedding emotion encoder energy entropy
equation error estimation evaluation event evolution execution expression failure feature feedback fiber
field filter flow formula forum framework frequency function fusion game gaze genome geometry gesture
gradient grammar graph grid hardware hash heuristic hierarchy image impact inference information
inspection instruction integration intention interaction interface interpolation interval invariant
isolation kernel keyword knowledge language latency lattice layout learning legacy library license
lifetime limit localization logic loop machine maintenance market matching matrix measure mechanism
memory mesh message metadata method migration mining mobility model modem module monitor motion music
navigation network node noise notation object ontology operator optimization oracle outlier overlay
packet page parallelism parser partition path pattern payment perception performance permission pipeline
planning platform pointer policy polygon population power prediction preference privacy process processor
profile program projection proof protocol provenance proxy quality quantum query queue radar radio random
ranking reasoning recall receiver recognition recommendation recovery recursion reduction region
regression relation relay reliability rendering repair replica request requirement resource response
retrieval reward risk robot router routing rule sampling scene schedule schema search segment semantics
sensor sequence server service session shape signal similarity simulation sketch software solver sound
space spectrum speech stability state statistics storage stream structure student style subspace summary
surface survey switch symbol synthesis system table task taxonomy team telescope template tensor test
text theorem thread threat throughput time tissue token topic topology trace tracking traffic training
trajectory transaction transfer translation transport tree trust tuning tutor type update usability user
utility value variable vector vehicle verification version video view virus vision vocabulary voice
voting wavelet wireless word workflow workload
"""
_PREFIXES = "auto bio co cross cyber geo hyper inter meta micro multi nano neuro semi sub tele trans ultra"
_COMMON = """
adaptive analysis applications approach approximate assessing automatic based case combining comparative
comparing data distributed dynamic effective efficient empirical evaluating exploring fast for framework
from general hybrid improved improving in intelligent large-scale managing method model modeling new
novel of on online optimal practical problem real-time robust scalable secure simple study systems the
toward towards understanding using via with
"""
_FORMS = (
    "Conference on {} {}",
    "Journal of {} {}",
    "Symposium on {} {}",
    "Workshop on {} {}",
    "Transactions on {} {}",
    "Letters in {} {}",
    "Advances in {} {}",
)
_VENUES = 12  # of a community
_GENERAL = 40  # venues of all communities
_TO_GENERAL = 0.15  # of papers
_VENUE_EXPONENT = 1.3
_WORDS = 41  # of a community; a prime, so that every stride visits all words
_LAB_WORDS = 11  # words of each lab; a prime
_PLAIN = 0.6  # share of words without a prefix
_TITLE = (3, 9)  # words: fewest and most
_SOURCES = np.cumsum([0.4, 0.2, 0.3])  # of words: the lab, the community, all; the rest is any word


class Topics(NamedTuple):
    """The venue and the title of each paper, and the names of the venues."""

    venue: Ints
    venues: pa.StringArray
    title: pa.StringArray


def draw_topics(rng: np.random.Generator, papers: Papers) -> Topics:
    """Draw the venue and the title of every paper."""
    communities = int(papers.community.max()) + 1
    venues = _venue_names(communities * _VENUES + _GENERAL)
    return Topics(_venues(rng, papers, communities), venues, _titles(rng, papers, communities))


def _venues(rng: np.random.Generator, papers: Papers, communities: int) -> Ints:
    """Draw venues; those of a community differ in popularity, and every lab has its favorites."""
    count = len(papers.lab)
    law = np.arange(1, _VENUES + 1) ** -_VENUE_EXPONENT
    rank = np.searchsorted(np.cumsum(law / law.sum()), rng.random(count), side="right") % _VENUES
    favorite = (rng.random(len(papers.community)) ** 2 * _VENUES).astype(np.int64)
    own = papers.community[papers.lab] * _VENUES + (rank + favorite[papers.lab]) % _VENUES
    general = communities * _VENUES + rng.integers(0, _GENERAL, count)
    return np.where(rng.random(count) < _TO_GENERAL, general, own)


def _venue_names(count: int) -> pa.StringArray:
    """Return names that differ from one another, until all are used up."""
    stems = _STEMS.split()
    names = []
    for number in range(count):
        turn, form = divmod(number, len(_FORMS))
        ring, topic = divmod(turn, len(stems))
        # neighboring numbers share no word, because the strides are coprime to the number of words
        first = stems[topic * 89 % len(stems)].capitalize()
        second = stems[(topic * 37 + ring * 11 + 5) % len(stems)].capitalize()
        suffix = f" {_roman(ring // len(stems))}" if ring >= len(stems) else ""
        names.append(_FORMS[form].format(first, second) + suffix)
    return pa.array(names, pa.string())


def _roman(number: int) -> str:
    return "I" * (number + 1)


def _titles(rng: np.random.Generator, papers: Papers, communities: int) -> pa.StringArray:
    stems, common = _STEMS.split(), _COMMON.split()
    words = [*common, *stems, *(prefix + stem for prefix in _PREFIXES.split() for stem in stems)]
    of_community = np.where(
        rng.random((communities, _WORDS)) < _PLAIN,
        rng.integers(len(common), len(common) + len(stems), (communities, _WORDS)),
        rng.integers(len(common) + len(stems), len(words), (communities, _WORDS)),
    )
    count = len(papers.lab)
    length = rng.integers(_TITLE[0], _TITLE[1] + 1, count)
    paper = np.repeat(np.arange(count), length)
    position = np.arange(len(paper)) - np.repeat(np.cumsum(length) - length, length)
    # words of a title follow the list of the lab or community in a stride, so that none is repeated
    begin, stride = _ends(rng, count)
    lab = papers.lab[paper]
    favorite = rng.integers(0, _WORDS, len(papers.community))[lab]
    step = begin[paper] + position * stride[paper]
    number = rng.random(len(paper))
    source = np.searchsorted(_SOURCES, number, side="right")
    code = np.where(
        source == 0, (favorite + step % _LAB_WORDS) % _WORDS, (favorite + _LAB_WORDS + step) % _WORDS
    )
    word = of_community[papers.community[lab], code]
    word = np.where(source == 2, rng.integers(0, len(common), len(paper)), word)
    word = np.where(source == 3, rng.integers(len(common), len(words), len(paper)), word)
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    texts = pa.array(words).take(pa.array(word))
    return pc.utf8_capitalize(pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), " "))


def _ends(rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
    """Return where a title begins in the list of words, and its stride."""
    begin: Floats = rng.random(count) ** 2 * _WORDS
    return begin.astype(np.int64), rng.integers(1, _LAB_WORDS, count)
