"""Cultures: the shares of authors, their lists of names, and how they write names.

Shares of cultures and of middle names are our own estimates for computer science. The names of a culture are
those that originate in its countries: a list of names by country also contains the names of people who moved
there.
"""

from __future__ import annotations

from typing import NamedTuple

# One syllable, or several, as commonly written in Latin letters.
_PINYIN = (
    "(?:zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw])?"
    "(?:iang|iong|uang|ang|eng|ian|iao|ing|ong|uai|uan|ai|an|ao|ei|en|er|ia|ie|in|iu|ou|ua|ue|ui|un|uo|[aeiou])"
)
_CHINESE_FAMILY = "(?:zh|ch|sh|ts|hs|kw|[bpmfdtnlgkhjqxrzcsyw])?[aeiou]{1,3}(?:ng|[nrkpmh])?"
_JAPANESE = "(?:(?:[kgsztdnhbpmrwfjy]|sh|ch|ts|ky|gy|ny|hy|by|py|my|ry){0,2}[aeiou]{1,2}n?)+"
_KOREAN = "(?:ch|kw|gw|kk|ss|[bcdghjkmnprstwy])?(?:[aeiouy]{1,3}|wo{1,2}|woo|yoo|wa|wi)(?:ng|[knlmpt])?"


class Culture(NamedTuple):
    """One source of names.

    share
        Share of all authors.
    countries
        Countries whose lists are read, as ISO 3166 codes; the first one counts most.
    family_countries
        Further countries for family names only.
    middle
        Share of authors who usually write a middle name.
    given, family
        Patterns that names must match, ignoring case; empty if all names are allowed.
    families
        Largest number of family names.
    syllable
        Pattern of two syllables of a given name that may be written separately; such names have no middle
        names, and in their own countries the family name comes first.
    without
        Names that also originate in these countries are left out.
    """

    name: str
    share: float
    countries: tuple[str, ...]
    middle: float = 0.1
    given: str = ""
    family: str = ""
    families: int = 100_000
    syllable: str = ""
    without: tuple[str, ...] = ()
    family_countries: tuple[str, ...] = ()

    @property
    def syllabic(self) -> bool:
        """Whether given names are written in syllables."""
        return bool(self.syllable)


CULTURES = (
    Culture(
        "Chinese",
        0.19,
        ("CN",),
        middle=0.0,
        given=f"{_PINYIN}(?:-?{_PINYIN})?",
        family=_CHINESE_FAMILY,
        families=500,
        syllable=f"({_PINYIN})({_PINYIN})",
        family_countries=("TW", "HK"),
    ),
    Culture("Anglo", 0.17, ("GB", "IE", "US", "CA"), middle=0.4),
    Culture("Indian", 0.07, ("IN", "BD"), middle=0.1),
    Culture("German", 0.08, ("DE", "AT", "CH"), middle=0.12),
    Culture("French", 0.065, ("FR", "BE"), middle=0.1),
    Culture("Italian", 0.05, ("IT",), middle=0.08),
    Culture("Spanish", 0.055, ("ES", "MX", "AR", "CO", "CL", "PE"), middle=0.2),
    Culture("Japanese", 0.045, ("JP",), middle=0.0, given=_JAPANESE, family=_JAPANESE),
    Culture(
        "Korean",
        0.025,
        ("KR",),
        middle=0.0,
        given=f"{_KOREAN}-?{_KOREAN}",
        families=120,
        syllable=f"({_KOREAN})({_KOREAN})",
    ),
    Culture("Portuguese", 0.03, ("BR", "PT"), middle=0.25),
    Culture("Dutch", 0.03, ("NL",), middle=0.15),
    Culture("Nordic", 0.03, ("SE", "NO", "DK"), middle=0.12),
    Culture("Finnish", 0.012, ("FI",)),
    Culture("Polish", 0.02, ("PL",)),
    Culture("Czech", 0.013, ("CZ",)),
    Culture("Hungarian", 0.01, ("HU",)),
    Culture("Russian", 0.015, ("RU",), middle=0.3),
    Culture("Greek", 0.015, ("GR",), middle=0.15),
    Culture("Turkish", 0.015, ("TR",)),
    Culture("Persian", 0.015, ("IR",), without=("CZ",)),
    Culture("Hebrew", 0.015, ("IL",)),
    Culture("Arabic", 0.02, ("EG", "TN", "DZ"), middle=0.15),
    Culture("Indonesian", 0.01, ("ID",)),
)
