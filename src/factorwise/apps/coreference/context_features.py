"""Pair features from the context: quoted speech, and the similarity of documents and sentences."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from factorwise.apps.coreference import lexicon as lex
from factorwise.apps.coreference.mentions import ADDRESSED, PRONOUN, SAYS_I, SAYS_YOU, SPEAKS
from factorwise.apps.coreference.pairs import MentionPairs, coded, shared
from factorwise.apps.coreference.word_features import content_words
from factorwise.types import Bools, Floats

_NEAR = 3  # maximum number of sentences between nearby mentions
_UNLIKE, _ALIKE = 0.04, 0.15  # thresholds of the cosine similarity of documents
_LITTLE, _MUCH = 0.12, 0.3  # thresholds of the cosine similarity of sentences


def speech_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare the roles of two mentions in quoted speech: I, you, the speaker, the addressee."""
    m = pairs.mentions
    says_i, says_you, speaks, addressed = (m.voice == code for code in (SAYS_I, SAYS_YOU, SPEAKS, ADDRESSED))
    quoted = m.quotation >= 0
    one_exchange = pairs.both(m.exchange >= 0) & pairs.same(m.exchange)
    side = one_exchange & pairs.same(m.party)
    other_side = one_exchange & ~pairs.same(m.party)
    one_quotation = pairs.both(quoted) & pairs.same(m.quotation)
    near = ~one_exchange & (pairs.sentences_apart <= _NEAR)
    third = quoted & (m.person == 3)
    return {
        "one side, one quotation": side & one_quotation,
        "one side, other quotations": side & pairs.both(quoted) & ~one_quotation,
        "one side, I and the speaker": side & pairs.one_each(says_i, speaks),
        "one side, you and the addressed": side & pairs.one_each(says_you, addressed),
        "one side, I and the addressed": side & pairs.one_each(says_i, addressed),
        "one side, I and you": side & pairs.one_each(says_i, says_you),
        "two sides, one quotation": other_side & one_quotation,
        "two sides, other quotations": other_side & ~one_quotation,
        "I and a speaker close by": pairs.one_each(says_i, speaks) & near,
        "you and a speaker close by": pairs.one_each(says_you, speaks) & near,
        "the speaker and a third person spoken of": one_exchange & pairs.one_each(speaks, third),
        "the addressed and a third person spoken of": one_quotation
        & pairs.one_each(addressed, third & ~addressed),
    }


def topic_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare the documents and the sentences of two mentions, with higher weights for rarer words."""
    m = pairs.mentions
    across = ~pairs.same_document
    rarity = _rarity(pairs)
    documents = _document_likeness(pairs, rarity)
    sentences = _sentence_likeness(pairs, rarity)
    alike, unlike = across & (documents > _ALIKE), across & (documents < _UNLIKE)
    much = across & (sentences > _MUCH)
    little = across & (sentences > _LITTLE) & ~much
    pronoun = m.kind == PRONOUN
    same = pairs.same(coded([one.lemma if one.kind != PRONOUN else "" for one in m.described]))
    same &= pairs.same_type
    nothing = pairs.both(~pronoun) & (pairs.of_square(shared(content_words(pairs))) == 0) & pairs.same_type
    follows, precedes = _neighbors(pairs)
    return {
        "across documents": across,
        "across documents, a pronoun": across & ~pairs.both(~pronoun),
        "documents alike": alike,
        "documents alike, same lemma": alike & same,
        "documents alike, share no word": alike & nothing,
        "documents unlike": unlike,
        "documents unlike, same lemma": unlike & same,
        "sentences much alike, same lemma": much & same,
        "sentences much alike, share no word": much & nothing,
        "sentences a little alike, same lemma": little & same,
        "sentences a little alike, share no word": little & nothing,
        "same word follows": follows & pairs.same_type,
        "same word follows, share no word": follows & nothing,
        "same word precedes": precedes & pairs.same_type,
    }


def _rarity(pairs: MentionPairs) -> dict[str, float]:
    """Return the inverse document frequency (log) of each word; function words are left out."""
    documents = pairs.discourse.documents
    counts = Counter(word for document in documents for word in {t.lower() for t in document.tokens})
    return {
        word: math.log((len(documents) + 1) / count)
        for word, count in counts.items()
        if word[0].isalnum() and word not in lex.FUNCTION_WORDS
    }


def _document_likeness(pairs: MentionPairs, rarity: dict[str, float]) -> Floats:
    documents = pairs.discourse.documents
    columns = {word: column for column, word in enumerate(rarity)}
    table = np.zeros((len(documents), max(1, len(columns))), dtype=np.float32)
    for row, document in enumerate(documents):
        for word, count in Counter(token.lower() for token in document.tokens).items():
            if word in columns:
                table[row, columns[word]] = (1.0 + math.log(count)) * rarity[word]
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    likeness = table @ table.T
    numbers = pairs.mentions.document
    answer: Floats = likeness[numbers[pairs.later], numbers[pairs.earlier]]
    return answer


def _sentence_likeness(pairs: MentionPairs, rarity: dict[str, float]) -> Floats:
    """Return the cosine similarity of the sentences around two mentions, without the mentions' own words."""
    around: list[frozenset[str]] = []
    for (d, number), own in zip(pairs.discourse.places, content_words(pairs), strict=True):
        document = pairs.discourse.documents[d]
        place = document.mentions[number].start
        start, end = next(span for span in document.sentences if place < span[1])
        words = {token.lower() for token in document.tokens[start:end]}
        around.append(frozenset(word for word in words if word in rarity) - own)
    weight = np.sqrt([max(1e-6, sum(rarity[word] for word in words)) for words in around])
    common = pairs.of_square(shared(around, rarity))
    answer: Floats = common / (weight[pairs.later] * weight[pairs.earlier])
    return answer


def _neighbors(pairs: MentionPairs) -> tuple[Bools, Bools]:
    """Return whether the same content word follows both mentions, and whether the same one precedes both."""
    following, preceding = [], []
    for d, number in pairs.discourse.places:
        tokens = pairs.discourse.documents[d].tokens
        mention = pairs.discourse.documents[d].mentions[number]
        following.append(_content(tokens[mention.end]) if mention.end < len(tokens) else "")
        preceding.append(_content(tokens[mention.start - 1]) if mention.start else "")
    return pairs.same(coded(following)), pairs.same(coded(preceding))


def _content(token: str) -> str:
    word = token.lower()
    return word if word.isalpha() and word not in lex.FUNCTION_WORDS else ""
