"""Names by culture, from the package ``names-dataset``, which is imported only here and when used.

That package has, for a million names, their ranks in the countries where they are most frequent. A name
belongs to a culture if it ranks there about as high as anywhere; names that moved with people ("Singh" in
Italy) stay in their culture of origin, so that given and family names fit.
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
_SHORTEST = 3  # letters of a name, unless its culture has a pattern: shorter names are abbreviations
_NEIGHBOR = 6  # how many times farther down the list of another country than the first counts
_UNRANKED = 1_000_000_000
_AT_HOME = {"given": 10, "family": 2}  # how many times worse than its best rank the rank of a name may be

Ranks = dict[str, dict[str, Any]]


class NameLists(NamedTuple):
    """Names of one culture, the most frequent first."""

    culture: Culture
    given: tuple[str, ...]
    family: tuple[str, ...]


def load_inventory() -> tuple[NameLists, ...]:
    """Read the names of all cultures, which takes a few seconds and temporarily about a gigabyte."""
    package = _package()
    with _no_collection():
        family = _lists("family", package.NameDataset(False, True).last_names)
        given_names = _lists("given", package.NameDataset(True, False).first_names)
    return tuple(
        NameLists(culture, _without_family_names(culture, g, f), f)
        for culture, g, f in zip(CULTURES, given_names, family, strict=True)
    )


def _lists(part: str, known: Ranks) -> list[tuple[str, ...]]:
    """Return the names of each culture, by rank."""
    weights = _weights(part)
    patterns = [
        re.compile(getattr(culture, part) or rf".{{{_SHORTEST},}}", re.IGNORECASE) for culture in CULTURES
    ]
    ranked: list[list[tuple[float, str]]] = [[] for _ in CULTURES]
    for name, facts in known.items():
        if _LETTERS.fullmatch(name) is None:
            continue
        ranks = facts["rank"]
        standing = _standing(ranks, weights)
        if not standing:
            continue
        worst = _AT_HOME[part] * min(standing.values())
        for culture_number, rank in standing.items():
            if (
                rank <= worst
                and patterns[culture_number].fullmatch(name)
                and not _foreign(CULTURES[culture_number], ranks)
            ):
                ranked[culture_number].append((rank, name))
    return [
        tuple(name for _, name in sorted(names)[: culture.families if part == "family" else None])
        for culture, names in zip(CULTURES, ranked, strict=True)
    ]


def _weights(part: str) -> dict[str, tuple[int, int]]:
    """Return the culture of each country, and the factor of its ranks."""
    weights = {}
    for place, culture in enumerate(CULTURES):
        countries = culture.countries + (culture.family_countries if part == "family" else ())
        for number, country in enumerate(countries):
            weights[country] = (place, _NEIGHBOR if number else 1)
    return weights


def _standing(ranks: Mapping[str, int], weights: Mapping[str, tuple[int, int]]) -> dict[int, int]:
    """Return the best rank of a name in each culture that has it."""
    standing: dict[int, int] = {}
    for country, rank in ranks.items():
        if country in weights:
            number, weight = weights[country]
            if rank * weight < standing.get(number, _UNRANKED):
                standing[number] = rank * weight
    return standing


def _foreign(culture: Culture, ranks: Mapping[str, int]) -> bool:
    return any(country in ranks for country in culture.without)


def _without_family_names(
    culture: Culture, given: tuple[str, ...], family: tuple[str, ...]
) -> tuple[str, ...]:
    """Remove family names from the given names, among which they occur because they are written first."""
    if not culture.syllabic:
        return given
    rank_of = {name: number for number, name in enumerate(family)}
    return tuple(name for number, name in enumerate(given) if 2 * number < rank_of.get(name, 3 * len(given)))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from repeatedly walking a growing heap of a million small dictionaries."""
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
