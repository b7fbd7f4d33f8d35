"""Prepare a model over assignments for compiled walks: sum tables and lay them out by variable.

For sampling, the weights are fixed: all factors over fixed tuples become tables of scores, those of single
variables are summed, and one program contains them all, together with the counts of labels. For learning, the
weights change at any step, so the programs list the weights that a change touches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.assignments import factors as scored
from factorwise.kernels.assignments import gradients
from factorwise.kernels.compile.programs import Program
from factorwise.model.labels.incidence import Incidence, incidence
from factorwise.model.labels.statistics import Crossed, StatisticRows, joined_rows
from factorwise.types import Float64s, Int64s
from factorwise.variables.sparse_rows import starts_of

if TYPE_CHECKING:
    from factorwise.model.labels.base import ScopedTemplate, TableGroup
    from factorwise.model.labels.cardinality import Cardinality
    from factorwise.world.assignment import Assignment


MOST_TURNED = 1 << 13  # entries of tables that are also stored transposed; they should stay in the cache


class LabelProgram:
    """What compiled walks need of templates over assignments.

    Templates add themselves with `add_factors` and `add_counts`.
    """

    def __init__(self, world: Assignment) -> None:
        self.variables = world.variables
        self.cardinality = world.variables.cardinality
        self._factors: list[tuple[ScopedTemplate, int]] = []
        self._counts: list[tuple[Cardinality, int]] = []

    def add_factors(self, template: ScopedTemplate, offset: int) -> None:
        """Add factors over fixed tuples of variables, whose weights begin at ``offset``."""
        self._factors.append((template, offset))

    def add_counts(self, template: Cardinality, offset: int) -> None:
        """Add counts of a label in groups, whose weights begin at ``offset``."""
        self._counts.append((template, offset))

    def with_columns(self, arrays: Any) -> Any:
        """Return the arrays of a world unchanged, because the programs store what they need."""
        return arrays

    def programs(self, weights: Float64s) -> list[Program]:
        """Return the programs of all templates for walks during which ``weights`` stay the same."""
        groups = [
            group
            for template, offset in self._factors
            for group in template.tables(self.variables, weights[offset : offset + template.size])
        ]
        counts = [(t, t.potentials(weights[offset : offset + t.size])) for t, offset in self._counts]
        return self._scored(groups, counts)

    def learning_programs(self, weights: Float64s) -> list[Program]:
        """Return the programs of all templates for walks that change ``weights``."""
        groups = [
            group
            for template, _ in self._factors
            if template.has_constants()
            for group in template.tables(self.variables, np.zeros(template.size))
        ]
        counts = [(t, t.potentials(np.zeros(t.size))) for t, _ in self._counts if t.fixed is not None]
        programs = self._scored(groups, counts)
        weighted = [(template, offset) for template, offset in self._factors if template.size > 0]
        if weighted:
            programs.append(self._weighted_program(weighted, weights))
        counted = [(template, offset) for template, offset in self._counts if template.size > 0]
        if counted:
            programs.append(self._counted_program(counted, weights))
        return programs

    def _scored(self, groups: list[TableGroup], counts: list[tuple[Cardinality, Float64s]]) -> list[Program]:
        """Return one program for tables and counts, or none if there are neither."""
        if not groups and not counts:
            return []
        singles = [group for group in groups if group.scopes.shape[1] == 1]
        label_start, score = self._summed(singles)
        pairs, pair_tables = self._pairs([group for group in groups if group.scopes.shape[1] == 2])
        large, large_tables = self._large(
            [group for group in groups if group.scopes.shape[1] > 2], len(pair_tables)
        )
        counted = np.concatenate([np.zeros(0), *(potentials for _, potentials in counts)])
        tables = np.concatenate([pair_tables, large_tables])
        arrays: dict[str, Any] = {"score": score, "pair": pairs.records, "tables": tables}
        forbids = any(bool((part == -np.inf).any()) for part in (score, tables, counted))
        if not forbids and not counts and not len(large.records):
            at = _places(scored.PLACE, label_start, pairs.start)
            functions: dict[str, Any] = {"gain": scored.pairs_gain, "gains": scored.pairs_gains}
        else:
            members = _Members(len(self.cardinality), self.variables, [template for template, _ in counts])
            first = starts_of(np.array([len(potentials) for _, potentials in counts], np.int64))
            at = _places(scored.WIDE_PLACE, label_start, pairs.start, large.start, members.start)
            arrays |= {"large": _ended(large.records, len(large.other)), "other": large.other}
            arrays |= {"counted": counted, **members.arrays(first)}
            functions = {"gain": scored.factors_gain, "gains": scored.factors_gains}
            if counts:
                functions |= {"begin": scored.begin_counts, "applied": scored.counts_applied}
        functions["fetch"] = scored.fetch_pairs
        return [Program(name="factors over labels", arrays={"at": at, **arrays}, **functions)]

    def _summed(self, groups: list[TableGroup]) -> tuple[Int64s, Float64s]:
        """Sum the factors of single variables.

        Return where the scores of each variable begin, and the scores of its labels.
        """
        start = starts_of(self.cardinality)
        scores = np.zeros(int(start[-1]))
        for group in groups:
            labels = group.tables.shape[1]
            position = start[group.scopes[:, 0]][:, None] + np.arange(labels)
            np.add.at(scores, position, group.tables[group.which])
        return start, scores

    def _pairs(self, groups: list[TableGroup]) -> tuple[_Seen, Float64s]:
        """Return factors of two variables and their tables.

        If there is room, tables are also stored transposed.
        """
        seen = incidence(self.cardinality, [group.scopes for group in groups])
        tables, table = _table_starts(groups)
        scopes = np.concatenate([np.zeros((0, 2), np.int64), *(group.scopes for group in groups)])
        shape = self.cardinality[scopes]
        begin, stride, other_stride = table[seen.factor], seen.stride, seen.other_stride
        far = np.flatnonzero(stride > 1)
        known, turned_at = np.unique(
            np.column_stack([begin[far], shape[seen.factor[far]]]), axis=0, return_inverse=True
        )
        sizes = known[:, 1] * known[:, 2]
        if 0 < int(sizes.sum()) <= MOST_TURNED:
            turned = len(tables) + starts_of(sizes)
            tables = np.concatenate([tables, np.zeros(int(sizes.sum()))])
            for rows, columns in np.unique(known[:, 1:], axis=0).tolist():
                chosen = np.flatnonzero((known[:, 1] == rows) & (known[:, 2] == columns))
                entry = np.arange(rows * columns)
                values = tables[known[chosen, 0][:, None] + entry].reshape(-1, rows, columns)
                position = turned[chosen][:, None] + entry
                tables[position] = values.transpose(0, 2, 1).reshape(position.shape)
            begin = begin.copy()
            other_stride = other_stride.copy()
            begin[far] = turned[turned_at.ravel()]
            other_stride[far] = shape[seen.factor[far], 0]
            stride = np.where(stride > 1, 1, stride)
        records = np.zeros(len(seen.factor), scored.wide(scored.PAIR, len(tables)))
        records["table"], records["stride"] = begin, stride
        records["other"], records["other_stride"] = seen.other, other_stride
        return _Seen(seen, records), tables

    def _large(self, groups: list[TableGroup], first: int) -> tuple[_Seen, Float64s]:
        """Return factors of more than two variables and their tables, which begin at ``first``."""
        seen = incidence(self.cardinality, [group.scopes for group in groups])
        tables, table = _table_starts(groups)
        return _Seen(seen, _large_records(seen, first + table)), tables

    def _weighted_program(self, templates: list[tuple[ScopedTemplate, int]], weights: Float64s) -> Program:
        """Return the program of all statistics over fixed tuples of variables."""
        features: list[tuple[Int64s, Crossed]] = []
        pairs: list[tuple[Int64s, Crossed]] = []
        tabled: list[StatisticRows] = []
        for template, offset in templates:
            crossed = template.trusted_crossing()
            if crossed is None or template.scopes.shape[1] > 2:
                rows = template.statistic_rows(self.variables)
                tabled.append(rows._replace(weight=rows.weight + offset))
                continue
            scopes = template.scopes + template.offset(self.variables)
            kind = features if scopes.shape[1] == 1 else pairs
            kind.append((scopes, crossed._replace(base=crossed.base + offset)))
        feature_start, feature, amount = self._features(features)
        pair_seen, pair, base, value = self._crossed_pairs(pairs)
        seen = incidence(self.cardinality, [rows.scopes for rows in tabled])
        joined = joined_rows(tabled)
        neighbors = _others(seen)
        arrays = {
            "weights": weights,
            "at": _places(gradients.WEIGHTED, feature_start, pair_seen.start, seen.start),
            "feature": feature.astype(np.int32),
            "amount": amount if (amount != 1.0).any() else np.zeros(0),
            "pair": pair,
            "base": base.astype(np.int32),
            "value": value,
            "tabled": _ended(_large_records(seen, joined.first), len(neighbors)),
            "other": neighbors,
            "row": joined.start,
            "index": joined.weight.astype(np.int32),
            "number": joined.value,
        }
        entries = np.diff(feature_start) + _sums(pair_seen, (pair["high"] - pair["low"]).astype(np.int64))
        longest = int(np.diff(joined.start).max(initial=0))
        entries += longest * np.diff(seen.start)
        return Program(
            name="weighted factors over labels",
            arrays=arrays,
            entries=2 * int(entries.max()),
            gradient=gradients.weighted_gradient,
            gains=gradients.weighted_gains,
        )

    def _features(self, parts: list[tuple[Int64s, Crossed]]) -> tuple[Int64s, Int64s, Float64s]:
        """Return the features of single variables, ordered by variable."""
        owner, base, value = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for scopes, crossed in parts:
            counts = np.diff(crossed.start)[crossed.row]
            position = np.arange(int(counts.sum())) + np.repeat(
                crossed.start[crossed.row] - starts_of(counts)[:-1], counts
            )
            owner.append(np.repeat(scopes[:, 0], counts))
            base.append(crossed.base[position])
            value.append(crossed.value[position])
        owners = np.concatenate(owner)
        order = np.argsort(owners, kind="stable")
        start = starts_of(np.bincount(owners, minlength=len(self.cardinality)))
        return start, np.concatenate(base)[order], np.concatenate(value)[order]

    def _crossed_pairs(
        self, parts: list[tuple[Int64s, Crossed]]
    ) -> tuple[Incidence, NDArray[np.void], Int64s, Float64s]:
        """Return factors of two variables, and the features that they share."""
        seen = incidence(self.cardinality, [scopes for scopes, _ in parts])
        low, high, done = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        for _, crossed in parts:
            low.append(crossed.start[crossed.row] + done)
            high.append(crossed.start[crossed.row + 1] + done)
            done += len(crossed.base)
        records = np.zeros(len(seen.factor), gradients.CROSSED)
        records["low"] = np.concatenate(low)[seen.factor]
        records["high"] = np.concatenate(high)[seen.factor]
        records["stride"], records["other"] = seen.stride, seen.other
        records["other_stride"] = seen.other_stride
        base = np.concatenate([np.zeros(0, np.int64), *(crossed.base for _, crossed in parts)])
        return seen, records, base, np.concatenate([np.zeros(0), *(crossed.value for _, crossed in parts)])

    def _counted_program(self, templates: list[tuple[Cardinality, int]], weights: Float64s) -> Program:
        """Return the program of all statistics of counts."""
        members = _Members(len(self.cardinality), self.variables, [template for template, _ in templates])
        parts = []
        for template, offset in templates:
            count, weight = np.nonzero(template.basis)
            start = starts_of(np.bincount(count, minlength=len(template.basis)))
            nothing = np.zeros((1, 0), np.int64)
            parts.append(
                StatisticRows(
                    nothing, np.zeros(1, np.int64), start, weight + offset, template.basis[count, weight]
                )
            )
        rows = joined_rows(parts)
        arrays = {
            "weights": weights,
            "at": _places(gradients.MEMBERS, members.start),
            **members.arrays(rows.first),
            "row": rows.start,
            "index": rows.weight.astype(np.int32),
            "number": rows.value,
        }
        longest = int(np.diff(rows.start).max(initial=0))
        return Program(
            name="weighted counts of labels",
            arrays=arrays,
            entries=2 * longest * int(np.diff(members.start).max()),
            begin=scored.begin_counts,
            applied=scored.counts_applied,
            gradient=gradients.counted_gradient,
            gains=gradients.counted_gains,
        )


class _Seen:
    """Factors by variable, with their records."""

    def __init__(self, seen: Incidence, records: NDArray[np.void]) -> None:
        self.start = seen.start
        self.records = records
        self.other = _others(seen)


class _Members:
    """The groups of some templates, listed by variable."""

    def __init__(self, n_variables: int, variables: Any, templates: list[Cardinality]) -> None:
        nothing = np.zeros(0, np.int64)
        members = np.concatenate([nothing, *(template.members(variables) for template in templates)])
        sizes = np.concatenate([nothing, *(np.diff(template.start) for template in templates)])
        owner = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        self.start = starts_of(np.bincount(members, minlength=n_variables))
        self.member = owner[np.argsort(members, kind="stable")]
        self.templates = templates

    def arrays(self, first: Int64s) -> dict[str, Any]:
        """Return the arrays of the groups; ``first`` is where the scores or rows of each template begin."""
        groups = [template.n_groups for template in self.templates]
        group = np.zeros(sum(groups), scored.GROUP)
        group["label"] = np.repeat([template.code for template in self.templates], groups)
        group["table"] = np.repeat(first[: len(groups)], groups)
        return {"member": self.member, "group": group, "count": np.zeros(len(group), np.int64)}


def _table_starts(groups: list[TableGroup]) -> tuple[Float64s, Int64s]:
    """Return the tables of all groups, and where the table of each factor begins."""
    starts, base = [np.zeros(0, np.int64)], 0
    for group in groups:
        starts.append(base + group.which * group.tables.shape[1])
        base += group.tables.size
    return np.concatenate([np.zeros(0), *(group.tables.ravel() for group in groups)]), np.concatenate(starts)


def _places(kind: np.dtype[Any], *starts: Int64s) -> NDArray[np.void]:
    """Return as records where several lists begin for each variable."""
    records = np.zeros(len(starts[0]), scored.wide(kind, max(int(start[-1]) for start in starts)))
    for name, start in zip(kind.names or (), starts, strict=True):
        records[name] = start
    return records


def _large_records(seen: Incidence, table: Int64s) -> NDArray[np.void]:
    records = np.zeros(len(seen.factor), scored.LARGE)
    records["table"], records["stride"], records["other"] = (
        table[seen.factor],
        seen.stride,
        seen.other_start[:-1],
    )
    return records


def _others(seen: Incidence) -> NDArray[np.void]:
    records = np.zeros(len(seen.other), scored.OTHER)
    records["variable"], records["stride"] = seen.other, seen.other_stride
    return records


def _ended(records: NDArray[np.void], others: int) -> NDArray[np.void]:
    """Append a record that says where the neighbors of the last record end."""
    end = np.zeros(1, records.dtype)
    end["other"] = others
    return np.concatenate([records, end])


def _sums(seen: Incidence, amounts: Int64s) -> Int64s:
    """Sum amounts of factors by variable."""
    total = np.append(0, np.cumsum(amounts))
    return np.asarray(total[seen.start[1:]] - total[seen.start[:-1]], np.int64)
