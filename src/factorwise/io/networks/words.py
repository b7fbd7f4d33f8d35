"""Read the words of a text file one after the other, with an error for missing or wrong ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError


class Words:
    """The words of a file, read one after the other."""

    def __init__(self, text: str) -> None:
        self.words = text.split()
        self.position = 0

    def take(self, count: int, what: str) -> list[str]:
        """Return the next ``count`` words."""
        end = self.position + count
        if end > len(self.words):
            raise DataFileError(f"the file ends before {what}: it is truncated. Get the complete file.")
        taken = self.words[self.position : end]
        self.position = end
        return taken

    def counts(self, count: int, what: str, least: int = 0) -> list[int]:
        """Return the next ``count`` words as whole numbers of at least ``least``."""
        words = self.take(count, what)
        for word in words:
            if not (word.isascii() and word.isdigit() and len(word) < 16 and int(word) >= least):
                raise DataFileError(
                    f"{what} must be a whole number of {least} or more, but is {word[:40]!r}. Correct"
                    " the file."
                )
        return list(map(int, words))

    def numbers(self, count: int, what: str) -> NDArray[np.float64]:
        """Return the next ``count`` words as numbers."""
        words = self.take(count, what)
        try:
            return np.array(words, dtype=np.float64)
        except ValueError as error:
            raise DataFileError(f"{what} must be numbers: {error}. Correct the file.") from None

    def require_end(self, what: str) -> None:
        """Refuse words after the end."""
        if self.position < len(self.words):
            rest = len(self.words) - self.position
            raise DataFileError(
                f"there are {rest} words after {what}, from {self.words[self.position][:40]!r} on: a count"
                " before them is too small. Correct it, or remove the rest."
            )
