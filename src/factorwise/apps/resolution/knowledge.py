"""The fitted model of a resolver: fields, blocking rules, comparisons and weights, and its model file."""

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
    """The fitted model: all that is needed to resolve records like the training data.

    fields, rules, comparisons
        The kinds of columns, the blocking rules, and the comparisons of candidate pairs.
    weights
        Weights of links and of their comparison levels.
    temperature
        Calibration temperature of single records, fitted on held-out entities; 1 if there are none.
    thrifty
        Whether to use the smaller candidate budget, because its recall was nearly as high during training.
    training
        How the model was fitted, and its quality on held-out entities.
    further
        Weights of user-defined templates, by name.
    context
        The model that scores pairs in the context of clusters; None if it is not used.
    unlabelled
        The model fitted without labels, which then scores pairs instead of comparisons and weights.
    merges
        Log odds of merges, fitted on held-out entities, for probabilities of clusterings, pairs and entities.
    pair_filter
        A filter of candidates that are worth comparing; None to compare all.
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
        """Find the candidate pairs by the blocking rules, within the budget; see `find_candidates`.

        filtered
            Leave out pairs that are not worth comparing, if the model has a pair filter.
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
        """Return the largest number of candidate pairs for a number of records."""
        return (thrifty_budget if self.thrifty else default_budget)(n_records)

    def for_size(self, n_records: int) -> Knowledge:
        """Return the model for a table of this many records: the link weight is lower in larger tables.

        In a larger table, the entity of a record has as many records as before, but the number of chance
        candidates grows with the table. So the log odds that a candidate is a match are lowered by the log
        of the ratio of the table sizes. For smaller tables the model is unchanged.
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
        """The unlinked pair weight and the cluster weight, including those of the context model."""
        unlinked, cluster = self.weights.unlinked, self.weights.cluster
        if self.context is not None:
            unlinked, cluster = (
                unlinked + self.context.weights.unlinked,
                cluster + self.context.weights.cluster,
            )
        return LinkWeights(unlinked, cluster)

    def loses_links(self, candidates: Candidates) -> bool:
        """Return whether a smaller share of the pairs in blocks became candidates than during training."""
        fitted = self.training.get("joined_share") or 0.0
        return self.weights.unlinked < 0.0 and candidates.joined_share < fitted

    def with_linked_share(self, share: float) -> Knowledge:
        """Return the model for a table where this share of the pairs within entities is linked.

        Large tables have large blocks, in which only some pairs become candidates. If a smaller share of the
        pairs within entities is linked than in training, the unlinked pair weight is scaled towards zero.
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
        """Return the names of all weights, in order."""
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
        """Return all weights by name."""
        values = np.concatenate([self.weights.values, *self.further.values()])
        if self.context is not None:
            values = np.append(values, self.context.weights.values[FIXED_WEIGHTS:])
        named = dict(zip(self.weight_names(), values.tolist(), strict=True))
        return named if self.unlabelled is None else named | self.unlabelled.weights_by_name()

    def weights_by_comparison(self) -> dict[str, list[float]]:
        """Return the weights of the levels of each comparison, or column, except level 0."""
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
        """Write a model file, with provenance that names the training files."""
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
        """Read a model file; raise an error if its parts do not fit together."""
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
    """Return the training record of a file; raise an error if a value used later is not a number."""
    training = dict(saved)
    errors = ("uncertain_error", "chance_error", "chance_limit")
    for name in ("records", "linked_share", "joined_share", *errors):
        if training.get(name) is not None:
            as_number(name, training[name])
    return training


def unlinked_pair_weight(linked_share: float) -> float:
    """Return the weight of two members of a cluster that are not linked.

    If few of the pairs within entities are linked, a missing link is no evidence against a pair. If nearly
    all are linked, it is.
    """
    return -max(0.0, 2.0 * linked_share - 1.0)
