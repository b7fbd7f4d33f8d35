"""Features of whole clusters: the kinds of their mentions, and contradictions between mentions."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np

from factorwise.apps.coreference import lexicon as lex
from factorwise.apps.coreference.documents import Discourse
from factorwise.apps.coreference.mentions import NAME, NOMINAL, PRONOUN, mention_table
from factorwise.apps.coreference.pairs import coded
from factorwise.model.clusterings.cluster_templates import ClusterTemplate
from factorwise.types import Bools
from factorwise.variables.fields import Fields

MANY = 4  # pronouns without a name or nominal, from which the cluster counts as having many


def mention_fields(discourse: Discourse) -> Fields:
    """Return the fields that cluster features use, with items in the order of the discourse's ``places``.

    A field is 0 for mentions to which it does not apply. ``name`` and ``noun`` are codes of a name's last
    word and of a nominal's head, and ``telling`` marks an *I* outside quotations.
    """
    m = mention_table(discourse)
    heads = coded([one.head for one in m.described]) + 1
    return Fields(
        pronoun=m.kind == PRONOUN,
        name=np.where(m.kind == NAME, heads, 0),
        noun=np.where(m.kind == NOMINAL, heads, 0),
        masculine=m.gender == lex.MASCULINE,
        feminine=m.gender == lex.FEMININE,
        singular=m.number == lex.SINGULAR,
        plural=m.number == lex.PLURAL,
        telling=(m.family == lex.FIRST) & (m.quotation < 0),
    )


def make_up(cluster: Any) -> tuple[Any, ...]:
    """Return features of the kinds of mentions in a cluster."""
    pronouns = 0
    names = 0
    for row in range(cluster.size):
        pronouns += cluster.pronoun[row]
        names += cluster.name[row] > 0
    nouns = cluster.size - pronouns - names
    alone = cluster.size == 1
    return (
        alone and pronouns == 1,
        alone and names == 1,
        alone and nouns == 1,
        not alone and pronouns == cluster.size,
        pronouns == cluster.size and pronouns >= MANY,
        not alone and names > 0,
        not alone and names == 0 and nouns > 0,
        cluster.size * log(cluster.size),
    )


def clashes(cluster: Any) -> tuple[Any, ...]:
    """Count contradictions within a cluster: genders, numbers, different names, different nouns."""
    men = 0
    women = 0
    ones = 0
    more = 0
    telling = 0
    for row in range(cluster.size):
        men += cluster.masculine[row]
        women += cluster.feminine[row]
        ones += cluster.singular[row]
        more += cluster.plural[row]
        telling += cluster.telling[row]
    names = 0
    nouns = 0
    for row in range(cluster.size):
        new_name = cluster.name[row] > 0
        new_noun = cluster.noun[row] > 0
        for other in range(row):
            if cluster.name[other] == cluster.name[row]:
                new_name = False
            if cluster.noun[other] == cluster.noun[row]:
                new_noun = False
        names += new_name
        nouns += new_noun
    return (
        men > 0 and women > 0,
        min(men, women),
        min(ones, more),
        max(0, names - 1),
        names > 2,
        max(0, nouns - 1),
        telling > 0 and names > 0,
    )


MAKE_UP = (
    "a pronoun alone",
    "a name alone",
    "a nominal alone",
    "pronouns only",
    "many pronouns only",
    "has a name",
    "nominals without a name",
    "size times its logarithm",
)
CLASHES = (
    "both genders",
    "mentions of the rarer gender",
    "mentions of the rarer number",
    "further names",
    "three names or more",
    "further nouns",
    "a narrator with a name",
)


def cluster_templates(discourse: Discourse) -> list[ClusterTemplate]:
    """Return the templates over whole clusters for a discourse."""
    fields = mention_fields(discourse)
    return [
        ClusterTemplate("make-up", fields, make_up, MAKE_UP),
        ClusterTemplate("clashes", fields, clashes, CLASHES),
    ]


def opening(cluster: Any) -> tuple[Any, ...]:
    """Count the mentions that begin an entity; a cluster should have exactly one."""
    surely = 0
    probably = 0
    perhaps = 0
    for row in range(cluster.size):
        surely += cluster.surely[row]
        probably += cluster.probably[row]
        perhaps += cluster.perhaps[row]
    return (
        max(0, surely - 1),
        max(0, probably - 1),
        max(0, perhaps - 1),
        surely > 0,
        probably > 0,
        perhaps > 0,
    )


OPENING = (
    "further mentions that surely begin an entity",
    "further mentions that probably begin one",
    "further mentions that perhaps begin one",
    "a mention that surely begins an entity",
    "a mention that probably begins one",
    "a mention that perhaps begins one",
)


def opening_template(opens: Mapping[str, Bools]) -> ClusterTemplate:
    """Return the template for mentions that ``surely``, ``probably`` and ``perhaps`` begin an entity."""
    return ClusterTemplate("opening", Fields(**opens), opening, OPENING)
