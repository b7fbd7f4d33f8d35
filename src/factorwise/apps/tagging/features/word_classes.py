"""Word classes from unlabelled text: words with similar neighbors belong to one class.

The counts of each word's left and right neighbors are converted to positive pointwise mutual information, a
truncated singular value decomposition turns them into vectors, and k-means clusters the vectors. Words are
in lower case, with every digit replaced by 0. Pretrained vectors can be used instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.templates import VALUES
from factorwise.errors import DataFileError, InvalidArgumentError, require

MOST_WORDS, MOST_NEIGHBORS = 50_000, 2_000
DIMENSIONS = 64
_NOISE = 1e-6  # smaller singular values, relative to the largest, are rounding noise
_DIGITS = 6  # decimals of vectors, so that classes do not depend on the order of summation
_DIGITS_AS_ZERO = VALUES["number"][0]


def learn_word_classes(
    sentences: Sequence[Sequence[str]],
    sizes: Sequence[int] = (64, 512),
    *,
    min_count: int = 3,
    seed: int = 0,
) -> dict[str, tuple[int, ...]]:
    """Return the classes of words that occur at least ``min_count`` times, one for each of ``sizes``.

    sentences
        The words of each sentence.
    sizes
        Numbers of classes: with few classes more words share one, with many classes they are more specific.
    """
    require(min_count >= 1, "min_count", min_count, "at least 1")
    plain = [[_DIGITS_AS_ZERO(word.lower()) for word in sentence] for sentence in sentences]
    counts = Counter(word for sentence in plain for word in sentence)
    words = [word for word, count in counts.most_common(MOST_WORDS) if count >= min_count]
    if len(words) < 2:
        raise DataFileError(
            f"only {len(words)} words occur {min_count} times or more in {sum(counts.values())} words: give"
            " more text, or a smaller min_count."
        )
    return classes_of_vectors(words, _neighbor_vectors(plain, words, seed), sizes, seed=seed)


def classes_of_vectors(
    words: Sequence[str], vectors: NDArray[np.float64], sizes: Sequence[int], *, seed: int = 0
) -> dict[str, tuple[int, ...]]:
    """Return the k-means classes of words by the directions of their vectors, for each of ``sizes``."""
    from sklearn.cluster import MiniBatchKMeans

    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0).round(_DIGITS)
    columns = []
    for size in sizes:
        require(size >= 2, "sizes", size, "at least 2 classes")
        model = MiniBatchKMeans(min(size, len(words)), random_state=seed, n_init=1, batch_size=4096)
        columns.append(model.fit_predict(unit).tolist())
    return dict(zip(words, zip(*columns, strict=True), strict=True))


def read_vectors(lines: Iterable[str], name: str) -> tuple[list[str], NDArray[np.float64]]:
    """Read word vectors in the text format of GloVe, word2vec and fastText: one word per line."""
    words, rows = [], []
    for number, line in enumerate(lines, 1):
        word, *cells = line.rstrip().split(" ")
        if number == 1 and len(cells) == 1:  # word2vec files begin with the size of the table
            continue
        try:
            rows.append(np.array(cells, dtype=np.float64))
        except ValueError:
            rows.append(np.zeros(0))
        if not len(rows[-1]) or len(rows[-1]) != len(rows[0]) or not np.isfinite(rows[-1]).all():
            raise DataFileError(
                f"{name}, line {number}: {line[:40]!r} is not a word and {len(rows[0]) or 'its'} numbers with"
                " spaces between them. Give word vectors as text."
            )
        words.append(word)
    if len(words) < 2:
        raise InvalidArgumentError(f"{name}: {len(words)} word vectors: give at least two.")
    return words, np.stack(rows)


def _neighbor_vectors(
    sentences: Sequence[Sequence[str]], words: Sequence[str], seed: int
) -> NDArray[np.float64]:
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    number = {word: place for place, word in enumerate(words)}
    most = min(len(words), MOST_NEIGHBORS)  # later words are not counted as neighbors
    border = -2
    pairs: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        codes = [border, *(number.get(word, -1) for word in sentence), border]
        for place in range(1, len(codes) - 1):
            if codes[place] >= 0:
                for side, neighbor in enumerate((codes[place - 1], codes[place + 1])):
                    if neighbor == border or 0 <= neighbor < most:
                        pairs[codes[place], 2 * (most if neighbor == border else neighbor) + side] += 1
    cells = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    count = np.fromiter(pairs.values(), dtype=np.float64, count=len(pairs))
    rows, columns = cells[:, 0], cells[:, 1]
    of_row, of_column = np.bincount(rows, count), np.bincount(columns, count)
    information = np.log(count * count.sum() / (of_row[rows] * of_column[columns]))
    shape = (len(words), 2 * most + 2)
    matrix = csr_array((np.maximum(information, 0.0), (rows, columns)), shape=shape)
    rank = min(DIMENSIONS, min(shape) - 1)
    rng = np.random.default_rng(seed)
    left, strength, _ = svds(matrix, k=rank, v0=rng.standard_normal(min(shape)))
    vectors = left * np.where(strength > _NOISE * strength.max(), np.sqrt(strength), 0.0)
    return np.asarray(vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)]))
