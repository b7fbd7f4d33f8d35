"""Attributes of mentions: head, kind, number, gender, person, determiner, role, speech and position."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from factorwise.apps.coreference import lexicon as lex
from factorwise.apps.coreference.documents import Discourse, Document, Mention
from factorwise.apps.coreference.speech import Speech, SpeechSpan, is_address, speech_of
from factorwise.types import Bools, Ints

PRONOUN, NOMINAL, NAME = 0, 1, 2
NO_DETERMINER, DEFINITE, DEMONSTRATIVE, INDEFINITE, POSSESSED = range(5)
NO_VOICE, SAYS_I, SAYS_YOU, SPEAKS, ADDRESSED = range(5)

_KIND = {"PRO": PRONOUN, "NOM": NOMINAL, "NAM": NAME}
_THINGS = frozenset({"FAC", "LOC", "GPE", "ORG", "VEH", "PRODUCT", "FINANCE", "NON", "TIM", "TIME", "DATE"})
_VOTE_REACH = 15  # maximum number of tokens after a mention at which a pronoun indicates its gender
_MARKS = frozenset(
    {"'s", "'", ".", ",", ";", ":", "!", "?", '"', "(", ")", "--", "—", "_", "\u2019", "\u2019s"}
)


class Described(NamedTuple):
    """A mention described from its document alone; codes are those of `lexicon` and the top of this file."""

    words: tuple[str, ...]
    head: str
    lemma: str
    modifiers: frozenset[str]
    name_words: frozenset[str]
    text: str
    initials: str
    head_place: int
    kind: int
    family: int
    person: int
    number: int
    gender: int
    case: int
    determiner: int
    is_subject: bool
    after_preposition: bool


@dataclass(frozen=True, slots=True, eq=False)
class MentionTable:
    """The mentions of a discourse in columns.

    described
        The words and strings of each mention.
    document, sentence, start, end, head_place
        Positions; sentences are numbered through the whole discourse.
    kind, family, person, number, gender, case, determiner
        Grammatical attributes, in the codes of `lexicon` and of this file; 0 if unknown.
    leaning
        Gender of the pronouns that most often follow mentions with the same head in the document.
    type
        Code of the mention's type.
    is_subject, after_preposition
        Whether it is probably a subject, and whether a preposition precedes it.
    quotation
        Number of the quotation that contains it; -1 outside quotations.
    exchange, party, voice
        The exchange of speech in which it takes part (-1 for none), its side, and its role: saying I, being
        called you, being named as the speaker, or being addressed.
    alias
        Number of the mention that names a quoted I or you, if its exchange shows it; -1 for none. The gender
        of the I or you is then that of its party.
    """

    described: list[Described]
    document: Ints
    sentence: Ints
    start: Ints
    end: Ints
    head_place: Ints
    kind: Ints
    family: Ints
    person: Ints
    number: Ints
    gender: Ints
    leaning: Ints
    case: Ints
    determiner: Ints
    type: Ints
    is_time: Bools
    is_subject: Bools
    after_preposition: Bools
    quotation: Ints
    exchange: Ints
    party: Ints
    voice: Ints
    alias: Ints

    def __len__(self) -> int:
        return len(self.described)


def mention_table(discourse: Discourse) -> MentionTable:
    """Return the attributes of all mentions of a discourse."""
    columns: dict[str, list[int]] = defaultdict(list)
    described: list[Described] = []
    types: dict[str, int] = {}
    sentences = quotations = exchanges = 0
    numbers: dict[int, list[int]] = defaultdict(list)
    for d, m in discourse.places:
        numbers[d].append(m)
    for d, chosen in numbers.items():
        document = discourse.documents[d]
        mentions = [document.mentions[m] for m in chosen]
        text = Text.of(document)
        found = _share_gender([describe(text, mention) for mention in mentions])
        spans = [
            SpeechSpan(mention.start, mention.end, one.kind == PRONOUN)
            for mention, one in zip(mentions, found, strict=True)
        ]
        speech = speech_of(document.tokens, text.sentence, spans)
        columns["leaning"] += _leanings(found, mentions)
        voices = _voices(document, mentions, found, speech)
        found, aliases = _unmask(found, voices)
        for exchange, party, voice in voices:
            columns["exchange"].append(exchange + exchanges if exchange >= 0 else -1)
            columns["party"].append(party)
            columns["voice"].append(voice)
        columns["alias"] += [alias + len(described) if alias >= 0 else -1 for alias in aliases]
        for mention, one in zip(mentions, found, strict=True):
            columns["document"].append(d)
            columns["sentence"].append(sentences + int(text.sentence[mention.start]))
            columns["start"].append(mention.start)
            columns["end"].append(mention.end)
            columns["type"].append(types.setdefault(mention.type, len(types)))
            columns["is_time"].append(mention.type in lex.TIME_TYPES)
            for name in _GRAMMAR:
                columns[name].append(getattr(one, name))
            number = int(speech.of_token[mention.start])
            columns["quotation"].append(number + quotations if number >= 0 else -1)
        described += found
        sentences += len(document.sentences)
        quotations += len(speech.quotations)
        exchanges += len(speech.quotations)
    truths = ("is_time", "is_subject", "after_preposition")
    arrays = {
        name: np.array(values, dtype=bool if name in truths else np.int64) for name, values in columns.items()
    }
    return MentionTable(described=described, **arrays)


_GRAMMAR = (
    "head_place",
    "kind",
    "family",
    "person",
    "number",
    "gender",
    "case",
    "determiner",
    "is_subject",
    "after_preposition",
)


class Text(NamedTuple):
    """A document with the sentence number of each token and the set of its lower-case words."""

    document: Document
    sentence: Ints
    small: frozenset[str]

    @classmethod
    def of(cls, document: Document) -> Text:
        """Prepare a document for the description of its mentions."""
        starts = np.array([start for start, _ in document.sentences])
        sentence = np.searchsorted(starts, np.arange(len(document.tokens)), side="right") - 1
        return cls(document, sentence, frozenset(token for token in document.tokens if token.islower()))


def describe(text: Text, mention: Mention) -> Described:
    """Return the attributes of one mention, from its words and its neighbors."""
    tokens = text.document.tokens
    words = tuple(_plain(token) for token in tokens[mention.start : mention.end])
    head_place = mention.head if mention.head is not None else mention.start + _head(words)
    head = words[head_place - mention.start]
    before = tokens[mention.start - 1].lower() if mention.start else "."
    after = tokens[mention.end].lower() if mention.end < len(tokens) else "."
    kind = _kind(text, mention, head_place)
    core = words[: head_place - mention.start + 1]
    grammar = lex.PRONOUNS.get(head) if kind == PRONOUN else None
    if grammar is None:
        grammar = lex.Pronoun(
            lex.NO_PRONOUN, 3, _number(words, core, head, kind), _gender(core, mention, kind), 0
        )
    elif head == "her" and after.isalpha() and after not in lex.FUNCTION_WORDS:
        grammar = grammar._replace(case=lex.POSSESSIVE)
    content = [w for w in core if w not in lex.FUNCTION_WORDS and w not in _MARKS]
    named = [w for w in (words if kind == NAME else ()) if _may_name(w)]
    capitals = [
        t for t in tokens[mention.start : mention.end] if t[0].isupper() and t.lower() not in lex.TITLES
    ]
    return Described(
        words=words,
        head=head,
        lemma=lemma_of(head),
        modifiers=frozenset(content) - {head},
        name_words=frozenset(named),
        text=" ".join(w for w in core if w not in lex.DETERMINERS and w not in _MARKS) or head,
        initials="".join(t[0].lower() for t in capitals) if len(capitals) > 1 else "",
        head_place=head_place,
        kind=kind,
        family=grammar.family,
        person=grammar.person,
        number=grammar.number,
        gender=grammar.gender,
        case=grammar.case,
        determiner=_determiner(words, kind),
        is_subject=_is_subject(grammar.case, before, after),
        after_preposition=before in lex.PREPOSITIONS or words[0] in lex.PREPOSITIONS,
    )


def lemma_of(word: str) -> str:
    """Return the singular of a noun, as far as short rules can find it."""
    if word in lex.IRREGULAR_PLURALS:
        return lex.IRREGULAR_PLURALS[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word in lex.SINGULAR_NOUNS_IN_S:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1]


def _plain(token: str) -> str:
    word = token.lower()
    for ending in ("'s", "\u2019s"):
        if word.endswith(ending) and len(word) > 2:
            return word[:-2]
    return word


def _head(words: Sequence[str]) -> int:
    """Guess the head: the last word before the first preposition, comma or relative clause."""
    begin = 0
    while begin < len(words) - 1 and words[begin] in lex.PREPOSITIONS | lex.DETERMINERS:
        begin += 1
    last = begin
    for place in range(begin + 1, len(words)):
        word = words[place]
        if word in lex.PREPOSITIONS or word in lex.RELATIVES or word in {",", "(", "--", ":", ";"}:
            break
        if word not in _MARKS:
            last = place
    return last


def _kind(text: Text, mention: Mention, head_place: int) -> int:
    if mention.kind is not None:
        return _KIND[mention.kind]
    document, sentence, small = text
    token = document.tokens[head_place]
    word = _plain(token)
    single = mention.end - mention.start == 1
    if single and (word in lex.PRONOUNS or word in lex.OTHER_PRONOUNS):
        return PRONOUN
    if mention.head_pos is not None:
        return NAME if mention.head_pos == "PROPN" else NOMINAL
    if not token[0].isupper():
        return NOMINAL
    first = document.sentences[int(sentence[head_place])][0]
    if head_place == first or _is_headline(document, int(sentence[head_place])):
        return NOMINAL if word in small or lemma_of(word) in small else NAME
    return NAME


def _is_headline(document: Document, sentence: int) -> bool:
    start, end = document.sentences[sentence]
    long = [token for token in document.tokens[start:end] if token.isalpha() and len(token) > 3]
    return len(long) > 2 and sum(token[0].isupper() for token in long) >= 0.8 * len(long)


def _may_name(word: str) -> bool:
    known = word in lex.TITLES or word in lex.FUNCTION_WORDS or word in lex.COMPANY_WORDS
    return not known and word not in _MARKS


def _number(words: Sequence[str], core: Sequence[str], head: str, kind: int) -> int:
    if kind == PRONOUN:
        return (
            lex.PLURAL if head in {"both", "these", "those", "all", "some", "many", "others"} else lex.UNKNOWN
        )
    if "and" in core or "&" in core:
        return lex.PLURAL if kind != NAME or core[0] in lex.TITLES else lex.UNKNOWN
    if kind == NAME:
        return lex.PLURAL if words[0] == "the" and head.endswith("s") else lex.SINGULAR
    if head in lex.PLURAL_NOUNS or (core[0] in lex.PLURAL_DETERMINERS and head != core[0]):
        return lex.PLURAL
    if core[0] in lex.SINGULAR_DETERMINERS:
        return lex.SINGULAR
    return lex.PLURAL if lemma_of(head) != head else lex.SINGULAR


def _gender(core: Sequence[str], mention: Mention, kind: int) -> int:
    if mention.type in _THINGS:
        return lex.NEUTER
    for word in core[:3]:
        if word in lex.FEMININE_TITLES:
            return lex.FEMININE
        if word in lex.MASCULINE_TITLES and kind == NAME:
            return lex.MASCULINE
    if kind == NAME:
        for word in core:
            masculine, feminine = word in lex.MASCULINE_NAMES, word in lex.FEMININE_NAMES
            if masculine or feminine:
                return lex.MASCULINE if masculine else lex.FEMININE
    head = core[-1]
    if head in lex.FEMININE_NOUNS:
        return lex.FEMININE
    return lex.MASCULINE if head in lex.MASCULINE_NOUNS else lex.UNKNOWN


def _determiner(words: Sequence[str], kind: int) -> int:
    if kind == PRONOUN:
        return NO_DETERMINER
    if words[0] in lex.POSSESSIVES or "'s" in words[1:-1]:
        return POSSESSED
    if words[0] in lex.DEMONSTRATIVE:
        return DEMONSTRATIVE
    if words[0] in lex.DEFINITE:
        return DEFINITE
    return INDEFINITE if words[0] in lex.INDEFINITE else NO_DETERMINER


def _is_subject(case: int, before: str, after: str) -> bool:
    if case in (lex.OBJECT, lex.POSSESSIVE, lex.REFLEXIVE):
        return False
    if before in lex.PREPOSITIONS or before in lex.POSSESSIVES:
        return False
    closed = lex.PREPOSITIONS | lex.CONJUNCTIONS | lex.DETERMINERS | lex.RELATIVES
    return after in lex.AUXILIARIES or (after.isalpha() and after not in closed)


def _share_gender(found: list[Described]) -> list[Described]:
    """Give a name of unknown gender the gender of names with the same last word, if all of them agree."""
    known: dict[str, set[int]] = defaultdict(set)
    for one in found:
        if one.kind == NAME and one.gender in (lex.MASCULINE, lex.FEMININE):
            known[one.head].add(one.gender)
    return [
        one._replace(gender=next(iter(known[one.head])))
        if one.kind == NAME and one.gender == lex.UNKNOWN and len(known.get(one.head, ())) == 1
        else one
        for one in found
    ]


def _leanings(found: Sequence[Described], mentions: Sequence[Mention]) -> list[int]:
    """Return the gender of the first he or she after mentions of one head, if most agree."""
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    for place, one in enumerate(found):
        if one.kind == PRONOUN:
            continue
        for later in range(place + 1, len(found)):
            if mentions[later].start > mentions[place].end + _VOTE_REACH:
                break
            if found[later].family in (lex.HE, lex.SHE):
                votes[one.head][found[later].gender] += 1
                break
    leanings = []
    for one in found:
        counts = votes.get(one.head, Counter()) if one.kind != PRONOUN else Counter()
        he, she = counts[lex.MASCULINE], counts[lex.FEMININE]
        clear = max(he, she) >= 2 and max(he, she) >= 3 * min(he, she)
        leanings.append((lex.MASCULINE if he > she else lex.FEMININE) if clear else lex.UNKNOWN)
    return leanings


def _voices(
    document: Document, mentions: Sequence[Mention], found: Sequence[Described], speech: Speech
) -> list[tuple[int, int, int]]:
    """Return the exchange, the party and the voice of each mention."""
    answer = [(-1, 0, NO_VOICE)] * len(found)
    for number, item in enumerate(speech.speaker.tolist()):
        if item >= 0:
            quotation = speech.quotations[number]
            answer[item] = (quotation.exchange, quotation.side, SPEAKS)
    for item, (mention, one) in enumerate(zip(mentions, found, strict=True)):
        number = int(speech.of_token[mention.start])
        if number < 0:
            continue
        quotation = speech.quotations[number]
        if one.family == lex.FIRST:
            answer[item] = (quotation.exchange, quotation.side, SAYS_I)
        elif one.family == lex.YOU:
            answer[item] = (quotation.exchange, 1 - quotation.side, SAYS_YOU)
        elif one.kind != PRONOUN and is_address(document.tokens, mention.start, mention.end):
            answer[item] = (quotation.exchange, 1 - quotation.side, ADDRESSED)
    return answer


def _unmask(
    found: list[Described], voices: Sequence[tuple[int, int, int]]
) -> tuple[list[Described], list[int]]:
    """Give each quoted I or you the gender of its party and the mention that names it, if they are unique."""
    genders: dict[tuple[int, int], set[int]] = defaultdict(set)
    names: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    for item, (exchange, party, voice) in enumerate(voices):
        if voice in (SPEAKS, ADDRESSED):
            genders[exchange, party].add(found[item].gender)
            if found[item].kind == NAME:
                names[exchange, party].setdefault(found[item].head, item)
    aliases = [-1] * len(found)
    answer = list(found)
    for item, (exchange, party, voice) in enumerate(voices):
        if voice in (SAYS_I, SAYS_YOU):
            known = genders[exchange, party] - {lex.UNKNOWN}
            if len(known) == 1:
                answer[item] = found[item]._replace(gender=next(iter(known)))
            if len(names[exchange, party]) == 1:
                aliases[item] = next(iter(names[exchange, party].values()))
    return answer, aliases
