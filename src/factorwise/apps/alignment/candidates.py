"""Generate the candidate pairs of concepts.

Two ontologies have too many pairs to score them all. The candidates of a concept are its nearest neighbors in
the other ontology: by words of the names, by letters of the names, by comments and instances, and by words of
the names including those of the parents. Children and parts of concepts with the same label are candidates
too. Classes are paired with classes, properties with properties, individuals with individuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.apps.alignment.lexicon import Lexicon
from factorwise.apps.alignment.texts import text_vectors
from factorwise.apps.alignment.vectors import letter_terms, nearest, tfidf, word_terms
from factorwise.errors import require

MOST_RELATIVES = 12  # most children (or parts) on each side for all of them to be paired


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateConfig:
    """Number of candidates of each concept, by method.

    words, letters, context, texts
        Number of nearest neighbors by words of the names, by letters of the names, by words of the names
        including those of the parents, and by comments and instances.
    relatives
        Whether children and parts of concepts with equal labels are paired with each other.
    """

    words: int = 8
    letters: int = 5
    context: int = 5
    texts: int = 5
    relatives: bool = True

    def __post_init__(self) -> None:
        for name in ("words", "letters", "context", "texts"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "zero or more")


def candidate_pairs(
    left: ConceptTable,
    right: ConceptTable,
    config: CandidateConfig | None = None,
    *,
    lexicon: Lexicon | None = None,
) -> NDArray[np.int64]:
    """Return the sorted candidate pairs (index on the left, index on the right) as int64[pairs, 2]."""
    config = config or CandidateConfig()
    lexicon = lexicon or Lexicon.of(left, right)
    by_word = tfidf(_translated(word_terms(left, lexicon), lexicon), word_terms(right, lexicon))
    found = [np.empty((0, 2), np.int64)]
    if config.words:
        found.append(nearest(*by_word, config.words))
    if config.letters:
        found.append(nearest(*tfidf(letter_terms(left), letter_terms(right)), config.letters))
    if config.context:
        found.append(nearest(*_with_context(left, right, by_word), config.context))
    if config.texts:
        found.append(nearest(*text_vectors(left, right), config.texts))
    if config.relatives:
        found.append(_relatives(left, right))
    pairs = np.unique(np.concatenate(found), axis=0)
    kinds = np.array(left.kinds)[pairs[:, 0]], np.array(right.kinds)[pairs[:, 1]]
    return np.asarray(pairs[kinds[0] == kinds[1]], dtype=np.int64)


def _translated(bags: list[list[str]], lexicon: Lexicon) -> list[list[str]]:
    """Add to the words of the left side their replacements on the right, from the lexicon."""
    other = lexicon.translations()
    return [bag + [new for word in bag for new in other.get(word, ())] for bag in bags]


def _with_context(
    left: ConceptTable, right: ConceptTable, by_word: tuple[csr_array, csr_array]
) -> tuple[csr_array, csr_array]:
    """Return the vectors of names plus half the mean of the vectors of their parents and wholes."""
    ours, theirs = (
        vectors + 0.5 * above(table, part_of=True) @ vectors
        for table, vectors in zip((left, right), by_word, strict=True)
    )
    return csr_array(ours), csr_array(theirs)


def above(table: ConceptTable, *, part_of: bool) -> csr_array:
    """Return a matrix that averages over the parents by is-a and, with ``part_of``, also over the wholes."""
    rows, columns, values = [], [], []
    for concept, (parents, wholes) in enumerate(zip(table.parents, table.wholes, strict=True)):
        over = dict.fromkeys((*parents, *wholes) if part_of else parents)
        rows += [concept] * len(over)
        columns += list(over)
        values += [1 / len(over) for _ in over]
    return csr_array((values, (rows, columns)), shape=(len(table), len(table)), dtype=np.float64)


def _relatives(left: ConceptTable, right: ConceptTable) -> NDArray[np.int64]:
    """Return pairs of children, and of parts, of concepts whose labels have the same words."""
    same: dict[frozenset[str], list[int]] = {}
    for b, names in enumerate(right.names):
        same.setdefault(frozenset(names[0].words), []).append(b)
    pairs = []
    for a, names in enumerate(left.names):
        for b in same.get(frozenset(names[0].words), ()):
            for ours, theirs in ((left.children, right.children), (left.parts, right.parts)):
                if len(ours[a]) <= MOST_RELATIVES and len(theirs[b]) <= MOST_RELATIVES:
                    pairs += [(x, y) for x in ours[a] for y in theirs[b]]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
