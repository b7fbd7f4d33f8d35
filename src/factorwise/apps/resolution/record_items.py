"""Records as the items of a clustering, and templates of one's own over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.model.model import Model
from factorwise.model.template import AnyTemplate, Template
from factorwise.variables.bags import Bags

LINKS = "links"  # name of the template of links


@dataclass(frozen=True, slots=True, eq=False)
class RecordItems:
    """The records of a table as the items that are clustered.

    table
        The records.
    item : int32[records]
        The item that stands for each record: records that must be together share one.
    n_items
        Number of items.
    """

    table: pa.Table
    item: NDArray[np.int32]
    n_items: int

    def values(self, column: str) -> list[Any]:
        """Return the value of each item in a column: that of its first record that has one, or None."""
        found: list[Any] = [None] * self.n_items
        for item, value in zip(self.item.tolist(), self._column(column).to_pylist(), strict=True):
            if found[item] is None:
                found[item] = value
        return found

    def codes(self, column: str) -> NDArray[np.int32]:
        """Return a number for the value of each item, the same for the same value; -1 where it is missing."""
        numbers: dict[Any, int] = {None: -1, "": -1}
        return np.array([numbers.setdefault(v, len(numbers) - 2) for v in self.values(column)], np.int32)

    def bags(self, column: str) -> Bags:
        """Return the values of the records of each item in a column, without missing ones, to be counted."""
        coded = self._column(column).dictionary_encode()
        empty = np.array([value in (None, "") for value in coded.dictionary.to_pylist()] or [False])
        code = np.asarray(coded.indices.fill_null(-1), np.int64)
        known = np.flatnonzero((code >= 0) & ~empty[code])
        width = len(coded.dictionary) + 1
        pairs, amount = np.unique(self.item[known] * np.int64(width) + code[known], return_counts=True)
        start = np.searchsorted(pairs // width, np.arange(self.n_items + 1))
        return Bags(start, pairs % width, amount)

    def _column(self, name: str) -> pa.Array:
        if name not in self.table.column_names:
            raise InvalidArgumentError(
                f"a template asks for column {name!r}; there are {', '.join(self.table.column_names)}."
            )
        column = self.table.column(name).combine_chunks()
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


TemplateMaker = Callable[[RecordItems], AnyTemplate]


def make_templates(makers: Sequence[TemplateMaker], items: RecordItems) -> tuple[AnyTemplate, ...]:
    """Make the templates of one's own for some records."""
    made = []
    for maker in makers:
        template = maker(items)
        if not isinstance(template, Template):
            raise TemplateError(
                f"{getattr(maker, '__name__', maker)!r} returned {type(template).__name__}, not a template:"
                " give functions of the records that return one, such as a TallyTemplate or PairTemplate."
            )
        made.append(template)
    names = [template.name for template in made]
    if len({*names, LINKS}) <= len(names):
        raise TemplateError(f"each template needs a name of its own other than {LINKS!r}, not {names}.")
    return tuple(made)


def further_model(templates: Sequence[AnyTemplate], weights: NDArray[np.float64]) -> Model | None:
    """Return the model of templates of one's own with their weights in turn; None where there are none."""
    return Model(list(templates), weights) if templates else None


def flat_weights(templates: Sequence[AnyTemplate], weights: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """Return the weights of templates in turn, from those of each by name."""
    names = [template.name for template in templates]
    if set(names) != set(weights):
        raise InvalidArgumentError(
            f"there are weights for the templates {sorted(weights)}, but the templates are {sorted(names)}:"
            " give EntityResolver(templates=...) the same functions as when it was fitted."
        )
    each = [np.atleast_1d(np.asarray(weights[name], np.float64)) for name in names]
    for template, values in zip(templates, each, strict=True):
        if values.shape != (template.size,):
            raise ShapeError(
                f"template {template.name!r} has {template.size} weights, but {len(values)} were given."
            )
    return np.concatenate([np.zeros(0), *each])


def weights_by_template(
    templates: Sequence[AnyTemplate], weights: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return the weights of each template by its name."""
    ends = np.cumsum([template.size for template in templates])
    return {
        template.name: weights[end - template.size : end]
        for template, end in zip(templates, ends.tolist(), strict=True)
    }
