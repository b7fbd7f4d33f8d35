"""Records as the items of a clustering, and user-defined templates over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.model.clusterings.program import check_items
from factorwise.model.model import Model
from factorwise.model.template import AnyTemplate, Template
from factorwise.variables.bags import Bags

LINKS = "links"  # name of the link template
RESERVED = (LINKS, "cannot link", "one per source")  # names that user-defined templates may not have


@dataclass(frozen=True, slots=True, eq=False)
class RecordItems:
    """The records of a table as the items of a clustering.

    table
        The records.
    item : int32[records]
        The item that stands for each record; records that must be together share one item.
    n_items
        Number of items.
    """

    table: pa.Table
    item: NDArray[np.int32]
    n_items: int

    def values(self, column: str) -> list[Any]:
        """Return the value of each item in a column, from its first record that has a value; else None."""
        found: list[Any] = [None] * self.n_items
        for item, value in zip(self.item.tolist(), self._column(column).to_pylist(), strict=True):
            if found[item] is None and not _is_missing(value):
                found[item] = value
        return found

    def codes(self, column: str) -> NDArray[np.int32]:
        """Return the value of each item as an integer code; -1 where the value is missing."""
        numbers: dict[Any, int] = {None: -1}
        values = (tuple(value) if isinstance(value, list) else value for value in self.values(column))
        return np.array([numbers.setdefault(value, len(numbers) - 1) for value in values], np.int32)

    def bags(self, column: str, *, words: bool = False) -> Bags:
        """Return the non-missing values of each item's records in a column, with their counts.

        The values of a list are its elements; with ``words``, the values are the lower-case words of a text.
        """
        values, item = self._column(column), self.item.astype(np.int64)
        if words:
            values = pc.split_pattern_regex(pc.utf8_lower(values.cast(pa.string())), r"[\s|]+")
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            item, values = item[np.asarray(pc.list_parent_indices(values))], pc.list_flatten(values)
        coded = values.dictionary_encode()
        empty = np.array([_is_missing(value) for value in coded.dictionary.to_pylist()] or [False])
        code = np.asarray(coded.indices.fill_null(-1), np.int64)
        known = np.flatnonzero((code >= 0) & ~empty[code])
        width = len(coded.dictionary) + 1
        pairs, amount = np.unique(item[known] * width + code[known], return_counts=True)
        start = np.searchsorted(pairs // width, np.arange(self.n_items + 1))
        return Bags(start, pairs % width, amount)

    def _column(self, name: str) -> pa.Array:
        if name not in self.table.column_names:
            raise InvalidArgumentError(
                f"a template asks for column {name!r}; there are {', '.join(self.table.column_names)}."
            )
        column = self.table.column(name).combine_chunks()
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, an empty text or NaN."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


TemplateMaker = Callable[[RecordItems], AnyTemplate]


def make_templates(makers: Sequence[TemplateMaker], items: RecordItems) -> tuple[AnyTemplate, ...]:
    """Make the user-defined templates for some records; raise an error if one is not valid."""
    made = []
    for maker in makers:
        template = maker(items)
        if not isinstance(template, Template):
            raise TemplateError(
                f"{getattr(maker, '__name__', maker)!r} returned {type(template).__name__}, not a template:"
                " give functions of the records that return one, such as a TallyTemplate or PairTemplate."
            )
        fields = getattr(template, "fields", None) if getattr(template, "needs_fields", True) else None
        holders = (template, getattr(template, "keys", None), fields)
        owner: Any = next((each for each in holders if hasattr(each, "n_items")), items)
        check_items(template.name, owner.n_items, items.n_items)
        made.append(template)
    names = [template.name for template in made]
    if len({*names, *RESERVED}) < len(names) + len(RESERVED):
        raise TemplateError(f"each template needs a name of its own other than {LINKS!r}, not {names}.")
    return tuple(made)


def further_model(templates: Sequence[AnyTemplate], weights: NDArray[np.float64]) -> Model | None:
    """Return a model of the user-defined templates, with concatenated weights; None if there are none."""
    return Model(list(templates), weights) if templates else None


def flat_weights(templates: Sequence[AnyTemplate], weights: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """Concatenate the weights of templates, which are given by name."""
    names = [template.name for template in templates]
    if set(names) != set(weights):
        raise InvalidArgumentError(
            f"there are weights for the templates {sorted(weights)}, but the templates are {sorted(names)}:"
            " name these in template_weights, and give EntityResolver(templates=...) the same functions as"
            " when it was fitted."
        )
    each = [np.atleast_1d(np.asarray(weights[name], np.float64)) for name in names]
    for template, values in zip(templates, each, strict=True):
        if values.shape != (template.size,) or not np.isfinite(values).all():
            raise ShapeError(
                f"template {template.name!r} needs {template.size} finite weights, not {values.tolist()}."
            )
    return np.concatenate([np.zeros(0), *each])


def weights_by_template(
    templates: Sequence[AnyTemplate], weights: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Split concatenated weights into those of each template, by name."""
    ends = np.cumsum([template.size for template in templates])
    return {
        template.name: weights[end - template.size : end]
        for template, end in zip(templates, ends.tolist(), strict=True)
    }
