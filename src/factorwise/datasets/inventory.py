"""Names by culture, from the package ``names-dataset``, which is imported only here and when used.

That package knows for a million names how they rank in the countries where they are most frequent. A name is
counted to a culture if it ranks there about as high as anywhere; what moved with people ("Singh" in Italy) is
left where it came from, so that given and family names go together.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from factorwise.datasets.cultures import CULTURES, Culture
from factorwise.errors import MissingExtraError

_LETTERS = re.compile(r"[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f'\u2019-]+")
_SHORTEST = 3  # letters of a name, unless its culture has a pattern: shorter ones are abbreviations
_NEIGHBOR = 6  # how many times farther down the list of another country than the first counts
_UNRANKED = 1_000_000_000
_AT_HOME = {"given": 10, "family": 2}  # how many times worse than its best rank a name may stand

Ranks = dict[str, dict[str, Any]]


class NameLists(NamedTuple):
    """Names of one culture, the most frequent first."""

    culture: Culture
    given: tuple[str, ...]
    family: tuple[str, ...]


def load_inventory() -> tuple[NameLists, ...]:
    """Read the names of all cultures; a few seconds, and about a gigabyte while it lasts."""
    package = _package()
    with _no_collection():
        family = _lists("family", package.NameDataset(False, True).last_names)
        given = _lists("given", package.NameDataset(True, False).first_names)
    return tuple(
        NameLists(culture, _without_family_names(culture, g, f), f)
        for culture, g, f in zip(CULTURES, given, family, strict=True)
    )


def _lists(part: str, known: Ranks) -> list[tuple[str, ...]]:
    """Names at home in each culture, by rank."""
    weights = _weights(part)
    patterns = [
        re.compile(getattr(culture, part) or rf".{{{_SHORTEST},}}", re.IGNORECASE) for culture in CULTURES
    ]
    found: list[list[tuple[float, str]]] = [[] for _ in CULTURES]
    for name, facts in known.items():
        if _LETTERS.fullmatch(name) is None:
            continue
        ranks = facts["rank"]
        standing = _standing(ranks, weights)
        if not standing:
            continue
        worst = _AT_HOME[part] * min(standing.values())
        for place, rank in standing.items():
            if rank <= worst and patterns[place].fullmatch(name) and not _foreign(CULTURES[place], ranks):
                found[place].append((rank, name))
    return [
        tuple(name for _, name in sorted(names)[: culture.families if part == "family" else None])
        for culture, names in zip(CULTURES, found, strict=True)
    ]


def _weights(part: str) -> dict[str, tuple[int, int]]:
    """Culture of each country, and by what its ranks are multiplied."""
    weights = {}
    for place, culture in enumerate(CULTURES):
        countries = culture.countries + (culture.family_countries if part == "family" else ())
        for number, country in enumerate(countries):
            weights[country] = (place, _NEIGHBOR if number else 1)
    return weights


def _standing(ranks: Mapping[str, int], weights: Mapping[str, tuple[int, int]]) -> dict[int, int]:
    """Best rank of a name in each culture that has it."""
    standing: dict[int, int] = {}
    for country, rank in ranks.items():
        if country in weights:
            place, weight = weights[country]
            if rank * weight < standing.get(place, _UNRANKED):
                standing[place] = rank * weight
    return standing


def _foreign(culture: Culture, ranks: Mapping[str, int]) -> bool:
    return any(country in ranks for country in culture.without)


def _without_family_names(
    culture: Culture, given: tuple[str, ...], family: tuple[str, ...]
) -> tuple[str, ...]:
    """Leave out family names that stand among the given ones because they are written first at home."""
    if not culture.syllabic:
        return given
    place = {name: number for number, name in enumerate(family)}
    return tuple(name for number, name in enumerate(given) if 2 * number < place.get(name, 3 * len(given)))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector from walking a growing heap of a million small dictionaries again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _package() -> Any:
    try:
        return import_module("names_dataset")
    except ImportError as fault:
        raise MissingExtraError(
            "generating author names needs names-dataset, which is not installed:"
            " pip install 'factorwise[generate]'."
        ) from fault
