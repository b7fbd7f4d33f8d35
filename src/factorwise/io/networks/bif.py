"""The Bayesian Interchange Format of bnlearn and others: variables with labels, then a table for each."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError
from factorwise.io.networks.network import Network, build_network, check_distribution

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?P<quoted>[^"\n]*)"|(?P<word>[^\s{}()\[\],;|"]+)|(?P<sign>[{}()\[\],;|])""",
    re.DOTALL,
)


class _Tokens:
    """Words and signs of a file, read one after the other; commas are spaces."""

    def __init__(self, text: str) -> None:
        matches = (match.group("quoted", "word", "sign") for match in _TOKEN.finditer(text))
        self.tokens = [
            word or quoted or sign or ""
            for quoted, word, sign in matches
            if quoted is not None or word is not None or (sign is not None and sign != ",")
        ]
        self.position = 0

    def next(self, what: str) -> str:
        """Return the next token."""
        if self.position >= len(self.tokens):
            raise DataFileError(
                f"the file ends where {what} should be: it is truncated. Get the complete file."
            )
        self.position += 1
        return self.tokens[self.position - 1]

    def expect(self, sign: str, what: str) -> None:
        """Skip a sign that must come next."""
        token = self.next(f"{sign!r} of {what}")
        if token != sign:
            raise DataFileError(
                f"{sign!r} of {what} is missing: {token[:40]!r} is in its place. Correct the file."
            )

    def until(self, sign: str, what: str) -> list[str]:
        """Return all tokens before the next ``sign`` and skip it."""
        try:
            end = self.tokens.index(sign, self.position)
        except ValueError:
            raise DataFileError(
                f"{sign!r} of {what} is missing: the file is truncated. Get the complete file."
            ) from None
        taken = self.tokens[self.position : end]
        self.position = end + 1
        return taken


def parse_bif(text: str) -> Network:
    """Read a Bayesian network from the text of a ``.bif`` file."""
    tokens = _Tokens(text)
    labels: dict[str, list[str]] = {}
    tables: dict[str, tuple[list[str], NDArray[np.float64]]] = {}
    while tokens.position < len(tokens.tokens):
        word = tokens.next("a block")
        if word == "network":
            tokens.until("{", "the network")
            tokens.until("}", "the network")
        elif word == "variable":
            name, names = _variable(tokens)
            if name in labels:
                raise DataFileError(f"variable {name!r} is declared twice: remove one of them.")
            labels[name] = names
        elif word == "probability":
            scope, table = _probability(tokens, labels)
            if scope[0] in tables:
                raise DataFileError(
                    f"variable {scope[0]!r} has two tables of probabilities: remove one of them."
                )
            tables[scope[0]] = scope, table
        else:
            raise DataFileError(
                f"{word[:40]!r} is in the place of a block 'network', 'variable' or 'probability'."
                " Correct the file, or name its format."
            )
    for name in labels:
        if name not in tables:
            raise DataFileError(f"variable {name!r} has no table of probabilities: the file is truncated.")
    return build_network(labels, tables.values(), "BAYES")


def _variable(tokens: _Tokens) -> tuple[str, list[str]]:
    """Read a variable and its labels."""
    name = tokens.next("the name of a variable")
    what = f"variable {name!r}"
    tokens.expect("{", what)
    labels: list[str] = []
    while (word := tokens.next(f"'}}' of {what}")) != "}":
        if word == "type":
            kind = tokens.next(f"the type of {what}")
            if kind != "discrete":
                raise DataFileError(f"{what} is {kind[:40]!r}: only discrete variables can be read.")
            tokens.until("{", what)
            labels = tokens.until("}", what)
        if word != ";":
            tokens.until(";", what)
    if not labels or len(set(labels)) != len(labels):
        raise DataFileError(f"{what} should have different labels, but has {labels[:8]}. Correct the file.")
    return name, labels


def _probability(tokens: _Tokens, labels: dict[str, list[str]]) -> tuple[list[str], NDArray[np.float64]]:
    """Read the table of one variable, its labels on the first axis and its parents' on the others."""
    tokens.expect("(", "a block 'probability'")
    scope = [word for word in tokens.until(")", "a block 'probability'") if word != "|"]
    unknown = [name for name in scope if name not in labels]
    if unknown or not scope or len(set(scope)) != len(scope):
        raise DataFileError(
            f"a block 'probability' names {unknown[:3] or scope[:3]}: it must name different variables"
            " that are declared before it."
        )
    what = f"the table of {scope[0]!r}"
    child, *parents = (len(labels[name]) for name in scope)
    if math.prod([child, *parents]) > len(tokens.tokens) * child:
        raise DataFileError(f"{what} requires more rows than the file has: complete it.")
    codes = [{label: code for code, label in enumerate(labels[name])} for name in scope[1:]]
    rows = np.full([*parents, child], np.nan)
    default: NDArray[np.float64] | None = None
    tokens.expect("{", what)
    while (word := tokens.next(f"'}}' of {what}")) != "}":
        if word == "(":
            key = tokens.until(")", what)
            if len(key) != len(codes) or any(
                name not in known for name, known in zip(key, codes, strict=True)
            ):
                raise DataFileError(
                    f"{what} has a row for ({', '.join(key)[:60]}), which are not labels of"
                    f" {scope[1:]}. Correct the row."
                )
            cell = tuple(known[name] for name, known in zip(key, codes, strict=True))
            rows[cell] = _numbers(tokens.until(";", what), child, what)
        elif word == "table":
            values = _numbers(tokens.until(";", what), math.prod([child, *parents]), what)
            rows = np.moveaxis(values.reshape([child, *parents]), 0, -1)
        elif word == "default":
            default = _numbers(tokens.until(";", what), child, what)
        elif word != ";":
            tokens.until(";", what)
    if default is not None:
        rows = np.where(np.isnan(rows), default, rows)
    if bool(np.isnan(rows).any()):
        raise DataFileError(
            f"{what} has no row for some labels of its parents: complete it, or add a default."
        )
    check_distribution(scope[0], rows)
    return scope, np.moveaxis(rows, -1, 0)


def _numbers(words: list[str], count: int, what: str) -> NDArray[np.float64]:
    """Return words as ``count`` numbers."""
    try:
        values = np.array(words, dtype=np.float64)
    except ValueError as error:
        raise DataFileError(f"{what} should hold numbers only: {error}. Correct the file.") from None
    if len(values) != count or bool(np.isnan(values).any()):
        raise DataFileError(
            f"{what} has {len(values)} numbers in a row that needs {count}: complete or correct it."
        )
    return values
