"""libDAI's ``.fg`` format: factors with their nonzero entries, the first variable of a scope fastest."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError
from factorwise.io.networks.network import Network, build_network, number_labels
from factorwise.io.networks.words import Words

#: Total number of table entries that a file may have. A file lists only nonzero ones, so a short file could
#: otherwise require any amount of memory.
MOST_ENTRIES = 1 << 26


def parse_fg(text: str) -> Network:
    """Read a factor graph from the text of a ``.fg`` file; variables are numbered by their ids."""
    words = Words(re.sub(r"#[^\n]*", "", text))
    sizes: dict[int, int] = {}
    factors: list[tuple[list[int], NDArray[np.float64]]] = []
    room = MOST_ENTRIES
    for factor in range(words.counts(1, "the number of factors")[0]):
        what = f"factor {factor}"
        arity = words.counts(1, f"the number of variables of {what}")[0]
        scope = words.counts(arity, f"the variables of {what}")
        shape = words.counts(arity, f"the numbers of labels of {what}", 1)
        if len(set(scope)) != len(scope):
            raise DataFileError(f"{what} names a variable twice: {scope[:8]}. Correct the file.")
        for variable, size in zip(scope, shape, strict=True):
            if sizes.setdefault(variable, size) != size:
                raise DataFileError(
                    f"variable {variable} has {sizes[variable]} labels in one factor and {size} in {what}."
                    " Correct the file."
                )
        entries = math.prod(shape)
        room -= entries
        if room < 0:
            raise DataFileError(
                f"the tables up to {what} have more than {MOST_ENTRIES} entries, which is the limit."
            )
        factors.append((scope, _table(words, entries, what).reshape(shape, order="F")))
    words.require_end("the last factor")
    order = sorted(sizes)
    labels = dict(zip(map(str, order), number_labels([sizes[v] for v in order]), strict=True))
    return build_network(labels, [([str(v) for v in scope], table) for scope, table in factors], "MARKOV")


def _table(words: Words, entries: int, what: str) -> NDArray[np.float64]:
    """Read the nonzero entries of a factor."""
    count = words.counts(1, f"the number of entries of {what}")[0]
    pairs = words.numbers(2 * count, f"the last entry of {what}").reshape(-1, 2)
    index = pairs[:, 0]
    if not bool(((index >= 0) & (index < entries) & (index == np.floor(index))).all()):
        raise DataFileError(f"an entry of {what} is not numbered from 0 to {entries - 1}. Correct the file.")
    table = np.zeros(entries)
    table[index.astype(np.int64)] = pairs[:, 1]
    return table
