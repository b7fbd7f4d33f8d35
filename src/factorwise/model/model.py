"""A model: templates and one flat weight vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, TemplateError
from factorwise.model.contributions import Contributions
from factorwise.model.template import AnyTemplate, Template
from factorwise.model.weights import SparseVector, WeightBlocks
from factorwise.types import Float64s
from factorwise.validation import is_rising
from factorwise.views import html_table
from factorwise.world.kinds import check_kind


class Model:
    r"""Templates and their weights: an unnormalised log-linear distribution over worlds.

    .. math:: \mathrm{score}(w) = \theta \cdot \phi(w) + c(w), \qquad p(w) \propto e^{\mathrm{score}(w)}

    with :math:`\theta` = ``weights``, :math:`\phi` = `statistics` summed over the templates' factors and
    :math:`c` the scores that no weight multiplies.

    templates
        The templates of the model, each with a name of its own.
    weights
        One flat vector, or a mapping from names of templates to their weights; zero by default.
    """

    def __init__(
        self, templates: Sequence[AnyTemplate], weights: ArrayLike | Mapping[str, ArrayLike] | None = None
    ) -> None:
        if isinstance(templates, Template) or not templates:
            raise InvalidArgumentError("a model needs a list of templates: give Model([template, ...]).")
        self.templates = tuple(templates)
        for template in self.templates:
            if not isinstance(template, Template):
                raise InvalidArgumentError(
                    f"{template!r} is not a template: use PairTemplate, ClusterTemplate or"
                    " TupleTemplate to make one of a function, or derive from Template."
                )
        self.blocks = WeightBlocks(
            tuple(template.name for template in self.templates),
            tuple(template.size for template in self.templates),
        )
        self._weights = self.blocks.flat(weights)

    def _repr_html_(self) -> str:
        rows = []
        for template, offset in self.parts():
            block = self._weights[offset : offset + template.size]
            span = (float(block.min()), float(block.max())) if len(block) else ("", "")
            rows.append((template.name, type(template).__name__, len(block), *span))
        head = ("template", "kind", "weights", "smallest", "largest")
        return html_table(f"Model: {len(self._weights)} weights", head, rows)

    @property
    def weights(self) -> Float64s:
        """The flat weight vector; a new value is checked."""
        return self._weights

    @weights.setter
    def weights(self, values: ArrayLike | Mapping[str, ArrayLike]) -> None:
        self._weights = self.blocks.flat(values)

    def block(self, name: str) -> Float64s:
        """Return the weights of one template (a view)."""
        return self._weights[self.blocks.slice_of(name)]

    def parts(self) -> Iterator[tuple[AnyTemplate, int]]:
        """Yield each template with the offset of its block."""
        offset = 0
        for template in self.templates:
            yield template, offset
            offset += template.size

    def restrict_to(self, items: ArrayLike) -> Model:
        """Return the model for some items of a clustering, ascending, which are renumbered from 0.

        Its templates must have factors within clusters only. If each cluster lies in one part, the score of a
        clustering is then the sum of the scores of its parts.
        """
        kept = np.array(items, np.int64)
        if kept.ndim != 1 or not len(kept) or kept[0] < 0 or not is_rising(kept, strictly=True):
            raise InvalidArgumentError(
                "a model can be restricted to one or more items in ascending order, each once: give"
                " np.unique(items)."
            )
        return Model([template.restrict_to(kept) for template in self.templates], self._weights.copy())

    def statistics(self, world: Any) -> SparseVector:
        """Return the sufficient statistics of a whole world."""
        return SparseVector.sum(placed(t, t.statistics(world), offset) for t, offset in self.parts())

    def difference(self, world: Any, diff: Any) -> SparseVector:
        """Return the statistics after ``diff`` minus those before it, from the touched factors only.

        This is the atomic gradient. Implements: wick2009samplerank, Eq. 1.
        """
        return SparseVector.sum(
            placed(t, t.difference(world, diff), offset, "difference") for t, offset in self.parts()
        )

    def score(self, world: Any) -> float:
        """Return the unnormalised natural-log probability of ``world``."""
        if not hasattr(world, "apply"):
            raise InvalidArgumentError(
                f"a model scores worlds, such as a Partition or Assignment, not {world!r}."
            )
        for template in self.templates:
            check_kind(template, world)
        constant = sum(template.constant(world) for template in self.templates)
        return self.statistics(world).dot(self._weights) + constant

    def gain(self, world: Any, diff: Any) -> float:
        """Return the change of score under ``diff``; ``world`` is not changed."""
        constant = 0.0
        for template in self.templates:
            change = template.constant_gain(world, diff)
            if change == float("-inf"):
                return change
            constant += change
        return self.difference(world, diff).dot(self._weights) + constant

    def contributions(
        self, world: Any, diff: Any, weights: Float64s | None = None, *, bounds: bool = False
    ) -> Contributions:
        """List the factors that ``diff`` touches with their signed changes, which sum to `gain`.

        weights
            The flat vector to score with; the model's own by default.
        bounds
            Also return an upper limit of each change.
        """
        flat = self._weights if weights is None else weights
        return Contributions.joined(
            [
                t.contributions(world, diff, flat[offset : offset + t.size], bounds=bounds).shifted(offset)
                for t, offset in self.parts()
            ]
        )

    def weight_name(self, index: int) -> str:
        """Return the name of one weight of the flat vector."""
        for template, offset in self.parts():
            if offset <= index < offset + template.size:
                return template.weight_name(index - offset)
        raise InvalidArgumentError(
            f"weight {index} does not exist: the model has weights 0 to {self.blocks.size - 1}."
        )


def placed(
    template: AnyTemplate, vector: SparseVector, offset: int, method: str = "statistics"
) -> SparseVector:
    """Move what a method of a template returned from its block into the whole vector.

    A result that is not a sparse vector, or lies outside the block, is refused.
    """
    if not isinstance(vector, SparseVector):
        raise TemplateError(
            f"template {template.name!r} returned a {type(vector).__name__} as {method}: return a"
            " SparseVector, for example SparseVector.from_dense(values)."
        )
    if len(vector.index) and not 0 <= vector.index[0] <= vector.index[-1] < template.size:
        raise TemplateError(
            f"template {template.name!r} has {template.size} weights, but its {method} reached from"
            f" {vector.index[0]} to {vector.index[-1]}: give it a larger size, or return indices that"
            " count from the start of its block."
        )
    return vector.shifted(offset)
