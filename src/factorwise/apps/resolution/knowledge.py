"""What a resolver knows: the fields, the blocking rules, the comparisons and the weights, in a model file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking import (
    Candidates,
    Rule,
    default_budget,
    find_candidates,
    thrifty_budget,
)
from factorwise.apps.resolution.blocking.filters import PairFilter
from factorwise.apps.resolution.comparisons import Comparison
from factorwise.apps.resolution.context.model import ContextModel
from factorwise.apps.resolution.merge_odds import DEFAULT_ODDS, MergeOdds
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.unlabelled.model import UnlabelledModel
from factorwise.distributed.executors import Executor
from factorwise.errors import FactorwiseError, ModelFileError
from factorwise.inference.mcmc.shards.component_search import LinkWeights
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.models.provenance import provenance
from factorwise.kernels.clusterings.links import FIXED_WEIGHTS, LINK_WEIGHT, UNLINKED_WEIGHT
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.model.clusterings.link_templates import FIXED_NAMES
from factorwise.types import Ints
from factorwise.validation import as_number, check_number, check_weights

KIND = "resolution"


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """All that is needed to resolve records like those that it was learned from.

    fields, rules, comparisons
        What the columns are, which records become candidates, and how those are compared.
    weights
        Of links and of their comparison levels.
    temperature
        Calibration temperature of single records, fitted on held-out entities; 1 if there are none.
    thrifty
        Whether few candidates will do: those that share most found nearly all that more would have found.
    training
        How it was learned, and how well it did on entities that were held out.
    further
        Weights of templates of one's own, by name.
    context
        What the clusters of two records say, if that is used.
    unlabelled
        What was measured without labels, which then scores pairs instead of comparisons and their weights.
    merges
        Odds that give clusterings, pairs and whole entities their probabilities, fitted on held-out entities.
    pair_filter
        Which candidates are worth comparing; None for all.
    """

    fields: tuple[FieldSpec, ...]
    rules: tuple[Rule, ...]
    comparisons: tuple[Comparison, ...]
    weights: LevelWeights
    temperature: float = 1.0
    thrifty: bool = False
    training: Mapping[str, Any] = field(default_factory=dict)
    further: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    context: ContextModel | None = None
    unlabelled: UnlabelledModel | None = None
    merges: MergeOdds = DEFAULT_ODDS
    pair_filter: PairFilter | None = None

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, above=0)
        check_weights("weights", self.weights.values)
        for name, values in self.further.items():
            check_weights(f"weights of {name}", values)

    def candidates(
        self,
        normal: NormalTable,
        *,
        sources: Ints | None = None,
        within: bool = True,
        filtered: bool = False,
        threads: int,
        executor: Executor | None = None,
    ) -> Candidates:
        """Find the candidates among records by the rules, as many as are needed; see `find_candidates`.

        filtered
            Leave out pairs that are not worth comparing, where the model has learned which.
        """
        return find_candidates(
            normal,
            self.rules,
            budget=self.budget(normal.n_rows),
            sources=sources,
            within=within,
            pair_filter=self.pair_filter if filtered else None,
            threads=threads,
            executor=executor,
        )

    def budget(self, n_records: int) -> int:
        """Return how many pairs of so many records are compared at most."""
        return (thrifty_budget if self.thrifty else default_budget)(n_records)

    def for_size(self, n_records: int) -> Knowledge:
        """Return the model for a table of so many records: links count for less where there are more.

        A record has as many others of its entity in a large table as in a small one, but meets others by
        chance in proportion to the records. So the log odds that a candidate is of its entity are lower by
        the log of how many times larger the table is. For smaller tables the model stays as it is.
        """
        fitted = self.training.get("records") or 0
        if self.unlabelled is not None or not 0 < fitted < n_records:
            return self
        offset = math.log(n_records / fitted)
        values = self.weights.values.copy()
        values[LINK_WEIGHT] -= offset
        tested = None if self.pair_filter is None else replace(self.pair_filter, offset=offset)
        return replace(self, weights=LevelWeights(self.weights.sizes, values), pair_filter=tested)

    @property
    def cluster_weights(self) -> LinkWeights:
        """Weights of two members that are not linked, and of a cluster, in the answer."""
        unlinked, cluster = self.weights.unlinked, self.weights.cluster
        if self.context is not None:
            unlinked, cluster = (
                unlinked + self.context.weights.unlinked,
                cluster + self.context.weights.cluster,
            )
        return LinkWeights(unlinked, cluster)

    def loses_links(self, candidates: Candidates) -> bool:
        """Return whether less of the pairs in blocks is made than where the model was fitted."""
        fitted = self.training.get("joined_share") or 0.0
        return self.weights.unlinked < 0.0 and candidates.joined_share < fitted

    def with_linked_share(self, share: float) -> Knowledge:
        """Return the model for a table where this share of the pairs of one entity is linked.

        Large tables have large blocks, of which only some pairs are made. Where a smaller share of the pairs
        of one entity is linked than where the model was fitted, members that are not linked are no news.
        """
        fitted = unlinked_pair_weight(self.training.get("linked_share") or 0.0)
        factor = min(1.0, unlinked_pair_weight(share) / fitted) if fitted else 1.0

        def lighter(weights: LevelWeights) -> LevelWeights:
            values = weights.values.copy()
            values[UNLINKED_WEIGHT] *= factor
            return LevelWeights(weights.sizes, values)

        context = self.context
        if context is not None:
            context = replace(context, weights=lighter(context.weights))
        return replace(self, weights=lighter(self.weights), context=context)

    def weight_names(self) -> list[str]:
        """Name the weights, in their order."""
        levels = [
            f"{one.name}, {one.level_text(level)}"
            for one in self.comparisons
            for level in range(1, one.cuts.size + 1)
        ]
        own = [f"{name}: weight {k}" for name, values in self.further.items() for k in range(len(values))]
        return [*FIXED_NAMES, *levels, *own, *self._context_names()]

    def _context_names(self) -> list[str]:
        if self.context is None:
            return []
        return [
            f"{feature.name}, {cuts.text(level)}"
            for feature, cuts in zip(self.context.features, self.context.cuts, strict=True)
            for level in range(1, cuts.size + 1)
        ]

    def weights_by_name(self) -> dict[str, float]:
        """Return all weights by their names."""
        values = np.concatenate([self.weights.values, *self.further.values()])
        if self.context is not None:
            values = np.append(values, self.context.weights.values[FIXED_WEIGHTS:])
        named = dict(zip(self.weight_names(), values.tolist(), strict=True))
        return named if self.unlabelled is None else named | self.unlabelled.weights_by_name()

    def weights_by_comparison(self) -> dict[str, list[float]]:
        """Return for each comparison, or column, the weights of its levels but 0."""
        if self.unlabelled is not None:
            return {one.name: one.weights[1:].tolist() for one in self.unlabelled.evidence.columns}
        tables = (table[1:].tolist() for table in self.weights.tables())
        return dict(zip((one.name for one in self.comparisons), tables, strict=True))

    def save(
        self,
        path: str | os.PathLike[str],
        seed: int | None = None,
        data: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        """Write a model file; its provenance names the files that it was learned from."""
        metadata = {
            "fields": [{"name": f.name, "kind": f.kind, "options": dict(f.options)} for f in self.fields],
            "rules": [rule.as_dict() for rule in self.rules],
            "comparisons": [one.as_dict() for one in self.comparisons],
            "temperature": self.temperature,
            "merges": self.merges.as_dict(),
            "thrifty": self.thrifty,
            "training": dict(self.training),
        }
        if self.unlabelled is not None:
            metadata["unlabelled"] = self.unlabelled.as_dict()
        if self.pair_filter is not None:
            metadata["pair_filter"] = self.pair_filter.as_dict()
        record = provenance(configuration=dict(self.training), seed=seed, data=data)
        arrays = {"weights": self.weights.values}
        if self.further:
            metadata["templates"] = list(self.further)
            arrays |= {f"template_{place}": values for place, values in enumerate(self.further.values())}
        if self.context is not None:
            metadata["context"] = self.context.as_dict()
            arrays["context"] = self.context.weights.values
        write_model(path, ModelFile(kind=KIND, metadata=metadata, arrays=arrays, provenance=record))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Knowledge:
        """Read a model file."""
        file = read_model(path, KIND)
        try:
            saved, weights = file.metadata, file.arrays["weights"]
            comparisons = tuple(Comparison.from_dict(one) for one in saved["comparisons"])
            names = [str(name) for name in saved.get("templates", [])]
            return cls(
                tuple(FieldSpec(one["name"], one["kind"], one["options"]) for one in saved["fields"]),
                tuple(Rule.from_dict(one) for one in saved["rules"]),
                comparisons,
                LevelWeights(tuple(one.cuts.size for one in comparisons), weights),
                as_number("temperature", saved["temperature"]),
                bool(saved.get("thrifty", False)),
                _checked_training(saved["training"]),
                {name: file.arrays[f"template_{place}"] for place, name in enumerate(names)},
                ContextModel.from_dict(saved["context"], file.arrays["context"])
                if "context" in saved
                else None,
                None if "unlabelled" not in saved else UnlabelledModel.from_dict(saved["unlabelled"]),
                MergeOdds.from_dict(saved["merges"]) if "merges" in saved else DEFAULT_ODDS,
                None if "pair_filter" not in saved else PairFilter.from_dict(saved["pair_filter"]),
            )
        except (AttributeError, LookupError, TypeError, ValueError, FactorwiseError) as error:
            raise ModelFileError(
                f"{os.fspath(path)}: its fields, rules, comparisons and weights do not fit together"
                f" ({error}). The file is damaged or from another version: restore it from a copy, or train"
                " again."
            ) from error


def _checked_training(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file says of how its model was learned; what is computed with must be a number."""
    training = dict(saved)
    errors = ("uncertain_error", "chance_error", "chance_limit")
    for name in ("records", "linked_share", "joined_share", *errors):
        if training.get(name) is not None:
            as_number(name, training[name])
    return training


def unlinked_pair_weight(linked_share: float) -> float:
    """Return the weight of two members that are not linked.

    Where few of the pairs of one entity are linked, not being linked says nothing against a pair; where
    nearly all are, it does.
    """
    return -max(0.0, 2.0 * linked_share - 1.0)
