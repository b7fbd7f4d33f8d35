"""Constraints on whole label sequences, as data: one title, authors before it, as many first as last names.

A constraint has a kind and one or two names. A name is a span type (``title`` for ``B-title`` and
``I-title``) or a label. Each constraint is soft: its weight, zero or more, is the cost of violating it, and
is learned. Constraints can be written by hand, or generated for all names and pairs of names, so that
learning drops the useless ones.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from factorwise.apps.tagging.label_counts import LabelCounts, Row, combined
from factorwise.errors import DataFileError, InvalidArgumentError, require
from factorwise.inference.message_passing.projection import (
    Losses,
    SequenceEnergy,
    TiedMeasurement,
    huber,
    smoothed_hinge,
)
from factorwise.types import Floats

WIDTH = 0.1  # width of the smooth part of a loss: smaller violations cost less than in proportion

#: Kinds of constraints: how many names each takes, and what it means.
KINDS: Mapping[str, tuple[int, str]] = {
    "one-stretch": (1, "at most one stretch of it"),
    "at-most-once": (1, "at most one token with it"),
    "at-least-once": (1, "at least one stretch of it"),
    "before": (2, "where both occur, the first begins before the second"),
    "as-many": (2, "as many stretches of the first as of the second"),
    "needs": (2, "no more stretches of the first than of the second: none without it"),
    "not-both": (2, "no more than one stretch of both together"),
    "one-of": (2, "at least one stretch of both together"),
    "next": (2, "the second begins right after the first at least once"),
}
SYMMETRIC = ("as-many", "not-both", "one-of")
MARGINS = {"as-many": 0.0, "needs": 0.0, "at-least-once": 1.0, "one-of": 1.0, "next": 1.0}
#: Kinds that are generated; "needs" in both directions means the same as "as-many".
GENERATED = ("one-stretch", "at-least-once", "before", "needs", "not-both", "one-of", "next")


@dataclass(frozen=True, slots=True)
class GlobalConstraint:
    """One constraint on label sequences.

    kind
        One of `KINDS`.
    names
        Span types or labels.
    weight
        Cost of violating the constraint once; None if it is still to be learned.
    """

    kind: str
    names: tuple[str, ...]
    weight: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            guess = difflib.get_close_matches(str(self.kind), KINDS, n=1)
            hint = f" Did you mean {guess[0]!r}?" if guess else ""
            raise InvalidArgumentError(
                f"there is no kind of constraint {self.kind!r}.{hint} There are: {', '.join(KINDS)}."
            )
        wanted = KINDS[self.kind][0]
        if len(self.names) != wanted or len(set(self.names)) != wanted:
            raise InvalidArgumentError(
                f"a constraint {self.kind!r} is about {wanted} label{'s, two different ones' * (wanted > 1)},"
                f" but {list(self.names)} was given."
            )
        if self.weight is not None:
            sound = isinstance(self.weight, int | float) and 0.0 <= self.weight < math.inf
            require(sound, "weight", self.weight, "a finite number, zero or more")

    def __str__(self) -> str:
        return f"{self.kind} {' '.join(self.names)}"

    def row(self, counts: LabelCounts) -> Row:
        """Return the coefficients that compute the measured quantity from the statistics of a sequence."""
        first = self.names[0]
        if self.kind == "one-stretch":
            return combined((-1.0, counts.stretches(first)))
        if self.kind == "at-most-once":
            return combined((-1.0, counts.tokens(first)))
        if self.kind == "at-least-once":
            return counts.stretches(first)
        second = self.names[1]
        mine, other = counts.beginnings(first), counts.beginnings(second)
        if self.kind == "before":
            # positions of the second minus those of the first, minus one for each beginning of the second
            places = counts.places(second), counts.places(first)
            return combined((1.0, places[0]), (-1.0, places[1]), (-1.0, other))
        if self.kind in ("not-both", "one-of"):
            sign = 1.0 if self.kind == "one-of" else -1.0
            return combined((sign, mine), (sign, other))
        if self.kind == "next":
            return counts.successions(first, second)
        return combined((-1.0, mine), (1.0, other))

    @property
    def margin(self) -> float:
        """The measured quantity must be at least this; for "as-many", it must equal it."""
        return MARGINS.get(self.kind, -1.0)

    @property
    def loss(self) -> Losses:
        """Return the loss as a function of the measured quantity."""
        if self.kind == "as-many":
            return huber(self.margin, WIDTH)
        return smoothed_hinge(self.margin, WIDTH)


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintSet:
    """Constraints on the label sequences of one tagger, in order."""

    constraints: tuple[GlobalConstraint, ...]

    @classmethod
    def generated(cls, labels: Sequence[str], kinds: Iterable[str] = GENERATED) -> ConstraintSet:
        """Return every constraint of these kinds that the labels allow."""
        names = LabelCounts(labels).types
        found: list[GlobalConstraint] = []
        for kind in kinds:
            if KINDS.get(kind, (1,))[0] == 1:
                groups: Iterable[tuple[str, ...]] = ((name,) for name in names)
            else:
                groups = combinations(names, 2) if kind in SYMMETRIC else permutations(names, 2)
            found += [GlobalConstraint(kind, group) for group in groups]
        return cls(tuple(found))

    @classmethod
    def parse(cls, text: str, labels: Sequence[str]) -> ConstraintSet:
        """Read constraints from TOML.

        .. code-block:: toml

            generate = ["one-stretch", "needs"]   # for all labels, and all pairs of them

            [[constraint]]
            kind = "before"
            labels = ["authors", "title"]
            weight = 2.0                          # leave it out to have it learned
        """
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DataFileError(f"not TOML ({error}). Correct it there.") from error
        _refuse_others(content, ("generate", "constraint"), "")
        kinds, tables = content.get("generate", []), content.get("constraint", [])
        if not isinstance(kinds, list) or not isinstance(tables, list):
            raise DataFileError(
                "'generate' is a list of kinds, as in generate = [\"one-stretch\"], and a constraint begins"
                " with [[constraint]]."
            )
        written = [_constraint(table, place) for place, table in enumerate(tables, start=1)]
        listed = {(each.kind, each.names) for each in written}
        try:
            more = cls.generated(labels, [str(kind) for kind in kinds]).constraints
        except InvalidArgumentError as error:
            raise DataFileError(f"generate: {error}") from error
        found = cls((*written, *(each for each in more if (each.kind, each.names) not in listed)))
        if not found.constraints:
            raise DataFileError("there is no constraint: add a [[constraint]], or generate = [...] kinds.")
        found.check(labels)
        return found

    def check(self, labels: Sequence[str]) -> None:
        """Raise an error if a constraint names something that is neither a label nor a span type."""
        counts = LabelCounts(labels)
        for place, constraint in enumerate(self.constraints, start=1):
            for name in constraint.names:
                if name not in counts:
                    guess = difflib.get_close_matches(name, [*counts.types, *labels], n=1)
                    hint = (
                        f"Did you mean {guess[0]!r}?" if guess else f"There are: {', '.join(counts.types)}."
                    )
                    raise DataFileError(
                        f"constraint {place} ({constraint.kind}) names {name!r}, which is no label of the"
                        f" training data. {hint}"
                    )

    @property
    def weights(self) -> Floats:
        """The weight of each constraint; zero where it is still to be learned."""
        return np.array([each.weight or 0.0 for each in self.constraints])

    @property
    def learned(self) -> bool:
        """Whether all constraints have a weight."""
        return all(each.weight is not None for each in self.constraints)

    def measurement(self, labels: Sequence[str]) -> TiedMeasurement:
        """Return the measurement of sequences, which has one number for each constraint."""
        counts = LabelCounts(labels)
        return TiedMeasurement.rows(len(labels), [each.row(counts) for each in self.constraints])

    @property
    def losses(self) -> Losses:
        """The loss of each constraint."""
        first, *others = (each.loss for each in self.constraints)
        return first.joined(*others)

    def energy(self, labels: Sequence[str]) -> SequenceEnergy:
        """Return the energy for `project_sequences`."""
        return SequenceEnergy(self.measurement(labels), self.losses, self.weights)

    def with_weights(self, weights: Floats) -> ConstraintSet:
        """Return the constraints whose weights are above zero, with these weights, largest first."""
        order = np.argsort(-weights, kind="stable")
        kept = order[weights[order] > 0].tolist()
        return ConstraintSet(
            tuple(
                GlobalConstraint(self.constraints[k].kind, self.constraints[k].names, float(weights[k]))
                for k in kept
            )
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain JSON values, for a model file."""
        return [
            {"kind": each.kind, "labels": list(each.names), "weight": each.weight}
            for each in self.constraints
        ]

    @classmethod
    def from_json(cls, values: Any) -> ConstraintSet:
        """Restore constraints from the output of `to_json`; raise an error for any other input."""
        return cls(
            tuple(
                GlobalConstraint(value["kind"], tuple(map(str, value["labels"])), value["weight"])
                for value in values
            )
        )


def _constraint(table: Any, place: int) -> GlobalConstraint:
    where = f"constraint {place}: "
    if not isinstance(table, dict):
        raise DataFileError(f"{where}begin it with [[constraint]] and give it a kind and labels.")
    _refuse_others(table, ("kind", "label", "labels", "weight"), where)
    kind, names = table.get("kind"), table.get("labels", table.get("label"))
    names = [names] if isinstance(names, str) else names
    listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not isinstance(kind, str) or not listed or ("label" in table and "labels" in table):
        raise DataFileError(
            f'{where}it needs a kind and its labels, as in kind = "before", labels = ["authors", "title"].'
        )
    try:
        return GlobalConstraint(kind, tuple(names or ()), table.get("weight"))
    except InvalidArgumentError as error:
        raise DataFileError(f"{where}{error}") from error


def _refuse_others(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            guess = difflib.get_close_matches(key, known, n=1)
            hint = f"Did you mean {guess[0]!r}?" if guess else f"There are: {', '.join(known)}."
            raise DataFileError(f"{where}there is no key {key!r}. {hint}")
