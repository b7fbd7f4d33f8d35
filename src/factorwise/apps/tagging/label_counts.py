"""Label statistics that constraints measure, as sums over a sequence: tokens, stretches, beginnings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

Row = dict[tuple[Hashable, ...], float]

_OPENING = "BSU"  # prefixes that always begin a span
_GOING_ON = "BI"  # prefixes after which a span can continue


class LabelCounts:
    """Coefficients of statistics for a set of labels; see `TiedMeasurement.rows`.

    Labels of nested spans list all types, outermost first, as in ``I-authors/B-person``, and count for each.

    types
        Span types, and labels that are not part of a span, except ``O``.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self._number = {label: code for code, label in enumerate(labels)}
        self._prefixes = [_prefixes(label) for label in labels]
        self.types = tuple(sorted({kind for found in self._prefixes for kind in found}))

    def __contains__(self, name: str) -> bool:
        return name in self.types or name in self._number

    def tokens(self, name: str) -> Row:
        """Count the tokens of a span type or with a label."""
        return {("all", code): 1.0 for code in self._codes(name)}

    def stretches(self, name: str) -> Row:
        """Count the stretches of a type, including those whose beginning is not marked.

        Every token of the type begins a stretch, unless its label does not mark a beginning and follows a
        label that the stretch can continue from.
        """
        row: Row = {}
        for code in self._codes(name):
            row["all", code] = 1.0
            if not self._opens(name, code):
                for before in range(len(self.labels)):
                    if self._leads_on(name, before):
                        row["pair", before, code] = -1.0
        return row

    def beginnings(self, name: str) -> Row:
        """Count the tokens that mark a beginning; count stretches if the labels have no such mark."""
        marked = self._marked(name)
        return {("all", code): 1.0 for code in marked} if marked else self.stretches(name)

    def successions(self, first: str, second: str) -> Row:
        """Count how often a stretch of the second type begins right after a token of the first type."""
        begun = self._marked(second) or self._codes(second)
        return {("pair", left, right): 1.0 for left in self._codes(first) for right in begun}

    def places(self, name: str) -> Row:
        """Sum the relative positions (0 to 1) of beginnings, or of tokens if beginnings are not marked."""
        return {("position", code): 1.0 for code in self._marked(name) or self._codes(name)}

    def _codes(self, name: str) -> list[int]:
        if name in self.types:
            return [code for code, found in enumerate(self._prefixes) if name in found]
        return [self._number[name]]

    def _marked(self, name: str) -> list[int]:
        return [code for code in self._codes(name) if self._opens(name, code)]

    def _opens(self, name: str, code: int) -> bool:
        return name in self.types and self._prefixes[code][name] in _OPENING

    def _leads_on(self, name: str, before: int) -> bool:
        """Return whether a stretch can continue after this label."""
        if name not in self.types:
            return self.labels[before] == name
        found = self._prefixes[before]
        return name in found and found[name] in _GOING_ON


def combined(*parts: tuple[float, Mapping[tuple[Hashable, ...], float]]) -> Row:
    """Return the sum of rows, each multiplied by a factor."""
    row: Row = {}
    for factor, part in parts:
        for key, value in part.items():
            row[key] = row.get(key, 0.0) + factor * value
    return {key: value for key, value in row.items() if value}


def _prefixes(label: str) -> dict[str, str]:
    """Return the prefix for each type in a label; a label outside the scheme is its own type."""
    pieces = [piece.partition("-") for piece in label.split("/")]
    if all(dash and len(prefix) == 1 for prefix, dash, _ in pieces):
        return {kind: prefix for prefix, _, kind in pieces}
    return {} if label == "O" else {label: "I"}
