"""A model whose pair scores can be read off counts, made ready to run compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import NoCompiledFormError
from factorwise.kernels.clusterings.counted_tables import CountWeights
from factorwise.kernels.clusterings.partition_gains import EDGE
from factorwise.model.cluster_templates import ClusterSize
from factorwise.model.counted_templates import CountedTemplate
from factorwise.model.model import Model
from factorwise.model.partition_program import check_items
from factorwise.model.partition_templates import EdgeTemplate
from factorwise.world.pairs import both_ends
from factorwise.world.partition import Partition

MOST_KEYS = 255
MOST_CONFLICTS = 32


class CountedProgram:
    """What counted walks need of a model of `CountedTemplate`, beside them `EdgeTemplate` and `ClusterSize`.

    codes, column_key : int32[n, columns], uint8[columns]
        Values of the keys by item, 0 for none, and which key each column is of.
    known : uint32[n]
        A bit for each key with conflicts of which the item has a value.
    edge_start, edges : int64[n + 1], EDGE[edges]
        Given pairs of all edge templates from both ends, with their scores at the model's weights.
    """

    def __init__(self, model: Model, n_items: int) -> None:
        if not is_counted(model):
            names = sorted({type(template).__name__ for template in model.templates})
            raise NoCompiledFormError(
                f"a model of {', '.join(names)} cannot be read off counts: it may have CountedTemplate,"
                " EdgeTemplate and ClusterSize."
            )
        self.model = model
        self.n_items = n_items
        columns: list[NDArray[np.int32]] = []
        keys: list[int] = []
        self.known = np.zeros(n_items, np.uint32)
        self.n_keys, conflicts = 0, 0
        for template in model.templates:
            if not isinstance(template, CountedTemplate):
                continue
            check_items(template.name, template.fields.n_items, n_items)
            for key, codes in zip(template.keys, template.codes, strict=True):
                rows = codes.reshape(n_items, -1)
                columns += list(rows.T)
                keys += [self.n_keys] * rows.shape[1]
                if "conflict" in key.features:
                    self.known |= (codes > 0).astype(np.uint32) << np.uint32(conflicts % MOST_CONFLICTS)
                    conflicts += 1
                self.n_keys += 1
        if self.n_keys > MOST_KEYS or conflicts > MOST_CONFLICTS:
            raise NoCompiledFormError(
                f"{self.n_keys} keys, {conflicts} of them with conflicts, are more than counted walks take"
                f" ({MOST_KEYS} and {MOST_CONFLICTS}): put some of them into a PairTemplate."
            )
        self.codes = np.column_stack(columns) if columns else np.zeros((n_items, 0), np.int32)
        self.column_key = np.array(keys, np.uint8)
        self._lay_out_edges()

    def _lay_out_edges(self) -> None:
        pairs, scores = [np.zeros((0, 2), np.int64)], [np.zeros(0)]
        for template, offset in self.model.parts():
            if isinstance(template, EdgeTemplate):
                check_items(template.name, template.n_items, self.n_items)
                worth = template.features @ self.model.weights[offset : offset + template.size]
                pairs.append(template.edges)
                scores.append(-worth if template.repels else worth)
        self.edge_start, neighbor, order = both_ends(self.n_items, np.concatenate(pairs))
        self.edges = np.zeros(len(neighbor), EDGE)
        self.edges["neighbor"], self.edges["score"] = neighbor, np.concatenate(scores)[order]

    def weights(self) -> CountWeights:
        """Return what counts are worth at the model's present weights."""
        equal, conflict = [], []
        pair, cluster, single = 0.0, 0.0, 0.0
        for template, offset in self.model.parts():
            given = self.model.weights[offset : offset + template.size].tolist()
            if isinstance(template, ClusterSize):
                cluster, single = cluster + given[0], single + given[1]
            elif isinstance(template, CountedTemplate):
                sign = -1.0 if template.repels else 1.0
                following = iter(given)
                for key in template.keys:
                    worth = {feature: sign * next(following) for feature in key.features}
                    equal.append(worth.get("equal", 0.0) - worth.get("conflict", 0.0))
                    conflict += [worth["conflict"]] if "conflict" in worth else []
                pair += sign * sum(following)
        return CountWeights(np.array(equal), np.array(conflict), pair, cluster, single)

    def constant(self) -> float:
        """Score of all pairs of items that repelling templates give before any two are together."""
        total = 0.0
        for template, offset in self.model.parts():
            if getattr(template, "repels", False):
                apart = template.statistics(Partition.singletons(self.n_items))
                total += apart.dot(self.model.weights[offset : offset + template.size])
        return total

    def edges_within(self, labels: NDArray[np.int32]) -> float:
        """Score of the given pairs whose two items have the same label."""
        ends = np.repeat(labels, np.diff(self.edge_start))
        together = ends == labels[self.edges["neighbor"]]
        return float(self.edges["score"][together].sum()) / 2.0  # each pair is listed from both ends


def is_counted(model: Model) -> bool:
    """Whether all pair scores of a model over clusterings can be read off counts."""
    kinds = [type(template) for template in model.templates]
    return CountedTemplate in kinds and set(kinds) <= {CountedTemplate, EdgeTemplate, ClusterSize}
