"""User-defined weights: given comparison levels with their weights, and factors for whole fields."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorwise.apps.resolution.comparisons import Comparison, Cuts
from factorwise.apps.resolution.comparisons.derived import has_form
from factorwise.apps.resolution.comparisons.plan import compared_forms
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import InvalidArgumentError
from factorwise.io.listing import some
from factorwise.model.clusterings.level_weights import LevelWeights

_LISTED = 20


def with_own_levels(
    comparisons: Sequence[Comparison], fields: Sequence[FieldSpec], normal: NormalTable
) -> list[Comparison]:
    """Return the comparisons, with the levels that fields define for some of them."""
    found = {one.name: one for one in comparisons}
    for field in fields:
        for own in field.levels:
            measure, _, form = own.compare.partition(" of ")
            known = dict.fromkeys(
                f"{each} of {shape}" for name, shape, each in compared_forms(normal, 0) if name == field.name
            )
            if own.compare not in known or not has_form(normal, field.name, form):
                raise InvalidArgumentError(
                    f"field {field.name!r} of kind {field.kind} has no comparison {own.compare!r}; it has"
                    f" {some(list(known), _LISTED)}."
                )
            cuts = Cuts(tuple(float(np.float32(start)) for start in own.starts), len(own.starts) + 1)
            one = Comparison(field.name, form, measure, cuts)
            found[one.name] = one
    return list(found.values())


def impose_weights(
    weights: LevelWeights, comparisons: Sequence[Comparison], fields: Sequence[FieldSpec]
) -> LevelWeights:
    """Replace weights by user-defined ones, and multiply those of a field by the field's weight."""
    factors = {field.name: field.weight for field in fields}
    own = {
        f"{field.name}: {levels.compare}": (0.0, *levels.weights)
        for field in fields
        for levels in field.levels
    }
    values = weights.values.copy()
    for number, one in enumerate(comparisons):
        start = weights.offsets[number]
        part = slice(start, start + one.cuts.size)
        values[part] = own.get(one.name, values[part] * factors.get(one.field, 1.0))
    return LevelWeights(weights.sizes, values)


def refuse_own_levels(fields: Sequence[FieldSpec]) -> None:
    """Raise an error if a field defines its own levels, which cannot be used without labels."""
    own = [f"{field.name}: {levels.compare}" for field in fields for levels in field.levels]
    if own:
        raise InvalidArgumentError(
            f"levels of your own ({some(own)}) go with labels. Without them, say with weight = ... how much a"
            " field counts, or label some entities."
        )
