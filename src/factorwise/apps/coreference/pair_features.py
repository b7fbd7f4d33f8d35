"""The feature table of all pairs of mentions, computed from the families of features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from factorwise.apps.coreference.context_features import speech_features, topic_features
from factorwise.apps.coreference.distance_features import (
    antecedent_features,
    distance_features,
    focus_features,
    spoken_features,
)
from factorwise.apps.coreference.documents import Discourse, Scope
from factorwise.apps.coreference.grammar_features import (
    agreement_features,
    pronoun_features,
    sentence_features,
)
from factorwise.apps.coreference.pairs import MentionPairs
from factorwise.apps.coreference.word_features import name_features, nominal_features, time_features
from factorwise.types import Bools
from factorwise.variables.pair_table import PairTable

Family = Callable[[MentionPairs], dict[str, Bools]]

_COMMON: tuple[Family, ...] = (
    agreement_features,
    name_features,
    nominal_features,
    pronoun_features,
    distance_features,
    antecedent_features,
    focus_features,
    sentence_features,
)

FAMILIES: dict[Scope, tuple[Family, ...]] = {
    "document": (*_COMMON, speech_features, spoken_features),
    "topic": (*_COMMON, time_features, topic_features),
}


def pair_table(discourse: Discourse) -> PairTable:
    """Return the features of all pairs of mentions of a discourse, with items in the order of its ``places``.

    The features of a document include quoted speech; those of a topic include the similarity of documents and
    sentences. The names of the features depend only on the scope.
    """
    pairs = MentionPairs(discourse)
    found: dict[str, Bools] = {}
    for family in FAMILIES[discourse.scope]:
        found |= family(pairs)
    values = np.empty((len(pairs.later), len(found)), dtype=np.uint8)
    for column, truths in enumerate(found.values()):
        values[:, column] = truths
    return PairTable(pairs.n, list(found), values)
