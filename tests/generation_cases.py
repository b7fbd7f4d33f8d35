"""Invented names for generators: as many as real ones, without the package that has these."""

from itertools import islice, product

from factorwise.datasets.cultures import CULTURES
from factorwise.datasets.inventory import NameLists
from factorwise.datasets.nicknames import NICKNAMES

ONSETS = list("bdfghjklmnprstvwz")
VOWELS = list("aeiou")
CHINESE = [onset + rest for rest in ("ang", "in", "u", "ai", "ong") for onset in ONSETS if onset != "v"]


def invented_names(families=20_000, given=8_000):
    """Lists for all cultures: names of two to four syllables, some with accents, some with nicknames."""
    lists = []
    for number, culture in enumerate(CULTURES):
        if culture.syllabic:
            pairs = (first + second for first, second in product(CHINESE, repeat=2))
            names = tuple(name.capitalize() for name in (*CHINESE, *islice(pairs, given)))
            lists.append(NameLists(culture, names, names[: culture.families // 4]))
            continue
        ending = ONSETS[number % len(ONSETS)]
        words = _words(ending)
        formal = list(NICKNAMES)[number::7]
        firsts = (*formal, *islice(words, given))
        lists.append(NameLists(culture, tuple(firsts), tuple(islice(words, families))))
    return tuple(lists)


def _words(ending):
    """Pronounceable words without end, as the ending tells where they are from."""
    syllables = [onset + vowel for vowel in VOWELS for onset in ONSETS]
    for length in (2, 3, 4):
        for parts in product(syllables, repeat=length):
            word = "".join(reversed(parts)).capitalize() + ending
            yield word.replace("o", "ö") if parts[-1] == "bo" else word
