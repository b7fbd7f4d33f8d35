"""Domains: the labels of variables and their codes, converted whole arrays at a time.

A `Domain` is immutable. A `DomainBuilder` grows while data are read and is then frozen into a `Domain`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, UnknownLabelError
from factorwise.types import Int32s, Int64s, Ints

Codes = Int32s
Kind = Literal["text", "integer", "object"]


def label_array(values: Any) -> NDArray[Any]:
    """Return labels as an array of strings, of integers, or else of Python objects, without mixing kinds."""
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.dtype.kind != "O" or array.ndim != 1:
            return array
        values = array.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"labels must be a list, but {values!r} was given.")
    listed = list(values)
    types = set(map(type, listed))
    if types == {str}:
        return np.asarray(listed)
    if types == {int}:
        whole = np.asarray(listed)
        if whole.dtype.kind in "iu":
            return whole
    return np.fromiter(listed, dtype=object, count=len(listed))


def _kind(array: NDArray[Any]) -> Kind:
    if array.dtype.kind == "U":
        return "text"
    return "integer" if array.dtype.kind in "iu" else "object"


@dataclass(frozen=True)
class Domain:
    """The labels a variable may take, in the order of their codes.

    name
        What the labels describe; used in messages.
    labels
        Distinct values: strings, integers or any other hashable objects.
    other
        The label that stands for every unknown value, one of ``labels``; None if there is no such label.

    >>> tags = Domain("tag", ["N", "V", "O"], other="O")
    >>> tags.encode(["V", "N", "X"], unknown="other").tolist()
    [1, 0, 2]
    """

    name: str
    labels: tuple[Hashable, ...]
    other: Hashable | None = None

    def __init__(self, name: str, labels: Iterable[Hashable], other: Hashable | None = None) -> None:
        listed = tuple(labels)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "labels", listed)
        object.__setattr__(self, "other", other)
        if len(self._code_of) != len(listed):
            seen: set[Hashable] = set()
            again = next(label for label in listed if label in seen or seen.add(label))  # type: ignore[func-returns-value]
            raise InvalidArgumentError(
                f"domain {name!r} lists the label {again!r} twice: list each label once."
            )
        if other is not None and other not in self._code_of:
            raise InvalidArgumentError(
                f"domain {name!r} has {other!r} as the label for unknown values, but does not list it:"
                " add it to labels."
            )

    @classmethod
    def growing(cls, name: str) -> DomainBuilder:
        """Return an empty domain to which labels are added until it is frozen."""
        return DomainBuilder(name)

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._code_of

    @cached_property
    def _code_of(self) -> dict[Hashable, int]:
        return {label: code for code, label in enumerate(self.labels)}

    @cached_property
    def _array(self) -> NDArray[Any]:
        return label_array(self.labels)

    @cached_property
    def _sorted(self) -> tuple[NDArray[Any], Int64s]:
        order = np.argsort(self._array, kind="stable")
        return self._array[order], order

    def code(self, label: Hashable) -> int:
        """Return the code of one label."""
        code = self._code_of.get(label)
        if code is None:
            raise UnknownLabelError(label, self.name, self.labels)
        return code

    def find(self, values: Any) -> Codes:
        """Return the code of each label, -1 for labels that the domain does not contain."""
        array = label_array(values)
        kind = _kind(array)
        if kind == "object" or kind != _kind(self._array):
            listed = array.ravel().tolist()
            if not all(isinstance(label, Hashable) for label in listed):
                raise InvalidArgumentError(f"labels must be single values, but {listed[:3]!r} was given.")
            codes = [self._code_of.get(label, -1) for label in listed]
            return np.array(codes, dtype=np.int32).reshape(array.shape)
        labels, order = self._sorted
        position = np.minimum(np.searchsorted(labels, array), len(labels) - 1)
        return np.where(labels[position] == array, order[position], -1).astype(np.int32)

    def encode(self, values: Any, unknown: Literal["error", "other"] = "error") -> Codes:
        """Return the code of each label.

        unknown
            ``"error"`` refuses labels that the domain does not contain, ``"other"`` encodes them as
            ``other``.
        """
        if unknown not in ("error", "other"):
            raise InvalidArgumentError(f"unknown must be 'error' or 'other', but {unknown!r} was given.")
        array = label_array(values)
        codes = self.find(array)
        missing = codes < 0
        if missing.any():
            if unknown == "error":
                first = array.ravel()[np.flatnonzero(missing)[0]]
                raise UnknownLabelError(_plain(first), self.name, self.labels)
            if self.other is None:
                raise InvalidArgumentError(
                    f"domain {self.name!r} has no label for unknown values: build it as Domain(name,"
                    " labels, other=...) with one of its labels."
                )
            codes[missing] = self._code_of[self.other]
        return codes

    def decode(self, codes: Ints) -> NDArray[Any]:
        """Return the label of each code."""
        array = np.asarray(codes)
        wrong = (array < 0) | (array >= len(self.labels))
        if wrong.any():
            raise InvalidArgumentError(
                f"code {int(array[wrong].flat[0])} does not exist in domain {self.name!r}: use codes"
                f" from 0 to {len(self.labels) - 1}."
            )
        return np.asarray(self._array[array])

    def extended(self, *labels: Hashable) -> Domain:
        """Return a domain with more labels; existing labels keep their codes."""
        return Domain(self.name, (*self.labels, *labels), self.other)


class DomainBuilder:
    """A domain that still grows: a label gets the next code when it is first seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._code_of: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._code_of)

    def code(self, label: Hashable) -> int:
        """Return the code of one label; a new label is added."""
        return self._code_of.setdefault(label, len(self._code_of))

    def encode(self, values: Any) -> Codes:
        """Return the code of each label; new labels are added in order of appearance."""
        array = label_array(values)
        if _kind(array) == "object":
            codes = [self.code(label) for label in array.ravel().tolist()]
            return np.array(codes, dtype=np.int32).reshape(array.shape)
        distinct, first, inverse = np.unique(array, return_index=True, return_inverse=True)
        appearance = np.argsort(first, kind="stable")
        code = np.empty(len(distinct), dtype=np.int32)
        code[appearance] = [self.code(label) for label in distinct[appearance].tolist()]
        return code[inverse].reshape(array.shape)

    def freeze(self, other: Hashable | None = None) -> Domain:
        """Return the domain of the labels seen so far."""
        return Domain(self.name, tuple(self._code_of), other)


def _plain(label: Any) -> object:
    return label.item() if isinstance(label, np.generic) else label
