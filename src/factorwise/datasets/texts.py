"""Operations on columns of text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def folded(texts: pa.StringArray) -> pa.StringArray:
    """Return texts in lower case without accents, so that spellings of a name compare equal."""
    coded = texts.dictionary_encode()
    return pc.utf8_lower(without_accents(coded.dictionary)).take(coded.indices)


def without_accents(texts: pa.StringArray) -> pa.StringArray:
    """Return texts in plain letters."""
    bare = replaced(pc.utf8_normalize(texts, "NFKD"), r"\p{M}", "")
    for letter, plain in (
        ("ł", "l"),
        ("Ł", "L"),
        ("ø", "o"),
        ("Ø", "O"),
        ("ß", "ss"),
        ("\u0131", "i"),
        ("æ", "ae"),
    ):
        bare = pc.replace_substring(bare, letter, plain)
    return bare


def replaced(texts: Any, pattern: str, replacement: str, times: int | None = None) -> Any:
    """Return texts in which matches of a regular expression are replaced."""
    return pc.replace_substring_regex(texts, pattern, replacement, max_replacements=times)


def joined(*parts: Any, by: str = " ") -> Any:
    """Join columns row by row; missing values are left out."""
    return pc.binary_join_element_wise(*parts, by, null_handling="skip")
