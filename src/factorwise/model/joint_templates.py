"""Templates over joint worlds: templates of one of the worlds, and templates that read two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks import agreement
from factorwise.model.target_templates import WholeWorldTemplate
from factorwise.model.template import AnyTemplate, Template
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int32s, Int64s
from factorwise.world.joint import Joint, JointDiff
from factorwise.world.kinds import check_kind


class Within(Template[Joint, JointDiff]):
    """A template over one of the worlds of a `Joint`.

    part
        The name of the world.
    inner
        A template for worlds of its kind.
    """

    def __init__(self, part: str, inner: AnyTemplate) -> None:
        if not isinstance(inner, Template):
            raise InvalidArgumentError(f"{inner!r} is not a template: give Within(part, template).")
        self.part = part
        self.inner = inner
        self.name = inner.name
        self.size = inner.size

    def weight_name(self, index: int) -> str:
        """Return the name that the inner template gives to the weight."""
        return self.inner.weight_name(index)

    def _one(self, world: Joint) -> Any:
        check_kind(self, world)
        check_kind(self.inner, world.part(self.part))
        return world.part(self.part)

    def statistics(self, world: Joint) -> SparseVector:
        """Return the statistics of the one world."""
        return self.inner.statistics(self._one(world))

    def constant(self, world: Joint) -> float:
        """Return the score of the one world that no weight multiplies."""
        return self.inner.constant(self._one(world))

    def _own(self, world: Joint, diff: JointDiff) -> list[tuple[Any, Any]]:
        """Return the diffs of the one world, each with the world before it."""
        own = [inner for name, inner in diff.parts if name == self.part]
        before, steps = world.part(self.part), []
        for number, inner in enumerate(own):
            steps.append((before, inner))
            if number + 1 < len(own):
                before = before.after(inner)
        return steps

    def difference(self, world: Joint, diff: JointDiff) -> SparseVector:
        """Return the sum over the diffs of the one world."""
        return SparseVector.sum(
            self.inner.difference(before, inner) for before, inner in self._own(world, diff)
        )

    def constant_gain(self, world: Joint, diff: JointDiff) -> float:
        """Return the sum over the diffs of the one world; minus infinity if one is forbidden."""
        gains = [self.inner.constant_gain(before, inner) for before, inner in self._own(world, diff)]
        return float("-inf") if float("-inf") in gains else float(sum(gains))


class _LabelsInClusters(WholeWorldTemplate):
    """Base of templates over a clustering and labels of the same items.

    clusters, labels
        Names of a `Partition` and of an `Assignment`, or of another world with a value for each item.
    """

    worlds = (Joint,)

    def __init__(self, name: str, clusters: str, labels: str, size: int) -> None:
        self.name, self.clusters, self.labels, self.size = name, clusters, labels, size

    def counts(self, world: Joint) -> Int64s:
        """Return the number of members of each cluster with each label: int64[clusters, labels]."""
        clusters, values = self._checked(world)
        count = np.zeros((clusters.n_clusters, world.part(self.labels).n_targets), np.int64)
        np.add.at(count, (clusters.dense_labels(), values), 1)
        return count

    def _checked(self, world: Joint) -> tuple[Any, Int32s]:
        clusters, values = world.part(self.clusters), world.part(self.labels).values
        if len(values) != clusters.n_items:
            raise ShapeError(
                f"template {self.name!r} needs a label for each of {clusters.n_items} items, but"
                f" {self.labels!r} has {len(values)}."
            )
        return clusters, values

    def _program(
        self,
        world: Joint,
        offset: int,
        weights: Float64s,
        moved: dict[str, Any],
        relabeled: dict[str, Any],
        retyped: dict[str, Any],
    ) -> Program:
        clusters, _ = self._checked(world)
        count = np.zeros((len(clusters.arrays.size), world.part(self.labels).n_targets), np.int32)
        numbered: list[dict[str, Any]] = [{} for _ in range(world.n_changes)]
        at = world.first(self.clusters)
        numbered[at] = {**moved, "applied": agreement.count_move}
        numbered[at + 1] = retyped
        numbered[world.first(self.labels)] = {**relabeled, "applied": agreement.count_label}
        return Program(
            arrays={"count": count, "weights": weights, "offset": [offset]},
            worlds=numbered[1:],
            name=self.name,
            entries=2 * max(self.size, 2),
            part=(("clusters", self.clusters), ("labels", self.labels)),
            begin=agreement.begin_counts,
            **numbered[0],
        )


class LabelAgreement(_LabelsInClusters):
    """How many pairs of items in one cluster have equal labels, and how many have different ones.

    clusters, labels
        Names of a `Partition` and of a world with a label for each of its items.
    """

    def __init__(self, clusters: str, labels: str, *, name: str = "agreement") -> None:
        super().__init__(name, clusters, labels, 2)

    def weight_name(self, index: int) -> str:
        """Return the name of the statistic."""
        return f"{self.name}: {('pairs that agree', 'pairs that differ')[index]}"

    def statistics(self, world: Joint) -> SparseVector:
        """Count the pairs."""
        count = self.counts(world)
        size = count.sum(axis=1)
        agree = (count * (count - 1) // 2).sum()
        return SparseVector.from_dense([agree, (size * (size - 1) // 2).sum() - agree])

    def program(self, world: Joint, offset: int, weights: Float64s) -> Program:
        """Return the program, which looks up the counts of the item's label."""
        moved = {
            "gain": agreement.gain_of_agreement_moved,
            "gradient": agreement.gradient_of_agreement_moved,
        }
        relabeled = {
            "gain": agreement.gain_of_agreement_relabeled,
            "gradient": agreement.gradient_of_agreement_relabeled,
        }
        return self._program(world, offset, weights, moved, relabeled, {})


class TypeLabels(_LabelsInClusters):
    """How many members of clusters of each type have each label, with one weight for each combination.

    clusters, labels
        Names of a `Partition` with types and of a world with a label for each of its items.
    n_types, n_labels
        Number of types and number of labels.
    """

    def __init__(
        self, clusters: str, labels: str, n_types: int, n_labels: int, *, name: str = "types and labels"
    ) -> None:
        super().__init__(name, clusters, labels, n_types * n_labels)
        self.n_types, self.n_labels = n_types, n_labels

    def weight_name(self, index: int) -> str:
        """Return the names of the type and the label."""
        kind, label = divmod(index, self.n_labels)
        return f"{self.name}: label {label} in type {kind}"

    def statistics(self, world: Joint) -> SparseVector:
        """Count the members."""
        clusters, values = self._checked(world)
        kinds = np.array([clusters.type_of(cluster) for cluster in clusters.labels.tolist()])
        return SparseVector.of(kinds * self.n_labels + values, np.ones(len(values)))

    def program(self, world: Joint, offset: int, weights: Float64s) -> Program:
        """Return the program, which looks up the type and the label of the item."""
        sizes = world.part(self.clusters).n_types, world.part(self.labels).n_targets
        if sizes != (self.n_types, self.n_labels):
            raise ShapeError(
                f"template {self.name!r} is for {self.n_types} types and {self.n_labels} labels, but"
                f" the worlds have {sizes[0]} and {sizes[1]}."
            )
        moved = {"gain": agreement.gain_of_type_moved, "gradient": agreement.gradient_of_type_moved}
        relabeled = {
            "gain": agreement.gain_of_type_relabeled,
            "gradient": agreement.gradient_of_type_relabeled,
        }
        retyped = {"gain": agreement.gain_of_retyped, "gradient": agreement.gradient_of_retyped}
        return self._program(world, offset, weights, moved, relabeled, retyped)


class LabelledPairs(WholeWorldTemplate):
    """Scores of pairs of items in one cluster, by the labels of both; and the number of such pairs.

    clusters, labels
        Names of a `Partition` and of a world with a label for each of its items.
    pairs : int[pairs, 4]
        Two items, the label of the first and that of the second; each once, the first item before the second.
    scores : float[pairs]
        The score of each; all other pairs have score zero.
    n_items, n_labels
        Number of items and number of labels.
    """

    worlds = (Joint,)
    size = 2

    def __init__(
        self,
        clusters: str,
        labels: str,
        pairs: ArrayLike,
        scores: ArrayLike,
        n_items: int,
        n_labels: int,
        *,
        name: str = "labelled pairs",
    ) -> None:
        self.name, self.clusters, self.labels = name, clusters, labels
        self.n_items, self.n_labels = n_items, n_labels
        self.pairs = np.asarray(pairs, np.int64).reshape(-1, 4)
        self.scores = np.asarray(scores, np.float64)
        first, second = self.pairs[:, 0], self.pairs[:, 1]
        inside = (first >= 0) & (first < second) & (second < n_items)
        inside &= ((self.pairs[:, 2:] >= 0) & (self.pairs[:, 2:] < n_labels)).all(axis=1)
        if self.scores.shape != (len(self.pairs),) or not inside.all():
            raise ShapeError(
                f"template {name!r} needs a score for each of its pairs, and pairs of two of {n_items} items,"
                f" the smaller first, and two of {n_labels} labels."
            )

    def weight_name(self, index: int) -> str:
        """Return the name of the statistic."""
        return f"{self.name}: {('scores', 'pairs')[index]}"

    def statistics(self, world: Joint) -> SparseVector:
        """Add the scores of the pairs within clusters, and count all pairs within clusters."""
        clusters, values = self._checked(world)
        first, second, label, partner_label = self.pairs.T
        together = clusters.labels[first] == clusters.labels[second]
        together &= (values[first] == label) & (values[second] == partner_label)
        size = np.bincount(clusters.dense_labels()).astype(np.float64)
        return SparseVector.from_dense([self.scores[together].sum(), (size * (size - 1.0)).sum() / 2.0])

    def _checked(self, world: Joint) -> tuple[Any, Int32s]:
        clusters, values = world.part(self.clusters), world.part(self.labels)
        sizes = clusters.n_items, len(values.values), values.n_targets
        if sizes != (self.n_items, self.n_items, self.n_labels):
            raise ShapeError(
                f"template {self.name!r} is for {self.n_items} items and {self.n_labels} labels, but"
                f" the worlds have {sizes[0]} items, labels for {sizes[1]} items and {sizes[2]} labels."
            )
        return clusters, values.values

    def program(self, world: Joint, offset: int, weights: Float64s) -> Program:
        """Return the program, which keeps the pairs of each item and label."""
        self._checked(world)
        ends = np.concatenate([self.pairs, self.pairs[:, [1, 0, 3, 2]]])
        node = ends[:, 0] * self.n_labels + ends[:, 2]
        order = np.argsort(node, kind="stable")
        numbered: list[dict[str, Any]] = [{} for _ in range(world.n_changes)]
        numbered[world.first(self.clusters)] = {
            "gain": agreement.gain_of_pairs_moved,
            "gradient": agreement.gradient_of_pairs_moved,
        }
        numbered[world.first(self.labels)] = {
            "gain": agreement.gain_of_pairs_relabeled,
            "gradient": agreement.gradient_of_pairs_relabeled,
        }
        return Program(
            arrays={
                "start": np.searchsorted(node[order], np.arange(self.n_items * self.n_labels + 1)),
                "other": ends[order, 1],
                "its": ends[order, 3],
                "score": np.tile(self.scores, 2)[order],
                "labels": [self.n_labels],
                "weights": weights,
                "offset": [offset],
            },
            worlds=numbered[1:],
            name=self.name,
            entries=2,
            part=(("clusters", self.clusters), ("labels", self.labels)),
            **numbered[0],
        )
