"""Compare pairs in distributed tasks, each of which gets two ranges of records and the pairs across them.

The normal forms of a range are sent to each worker only once. A task is a pure function, and scores are
bit-identical to those of all pairs at once. Comparisons that depend on the other candidates of a record need
the leads first: each task computes them for its pairs, and the results are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.derived import form_of
from factorwise.apps.resolution.comparisons.measures import GIVEN_NAMES
from factorwise.apps.resolution.comparisons.overlaps import LEADS, HasPairs, Leads, OverlapPairs
from factorwise.apps.resolution.comparisons.plan import Comparer, Comparison
from factorwise.apps.resolution.comparisons.sources import PAIR
from factorwise.apps.resolution.normalize.cut_rows import CutForm, Name, cut_rows, join_cuts, table_of
from factorwise.apps.resolution.normalize.forms import Form, NormalTable
from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.distributed.executors import Executor
from factorwise.io.columns import release
from factorwise.kernels.compile.threads import Team
from factorwise.types import Int32s, Int64s

ROWS_OF_A_RANGE = 1 << 20
RANGES = 16  # most ranges; the ranges of a larger table are larger
PAIRS_OF_A_TASK = (
    1 << 20
)  # pairs of a task within a range; four times as many across two ranges, which are joined first
_BY_TEXT = frozenset({"jaro-winkler", "edits", "words", PAIR})  # measures that need texts, not only codes
_OF_GIVEN_NAMES = ("first", "root", "first_sound", "first_initial")


class RecordRange(NamedTuple):
    """The normal forms of a range of records.

    kinds
        The kinds of the fields that have forms; forms of other fields are derived.
    """

    n_rows: int
    forms: Mapping[Name, CutForm]
    kinds: Mapping[str, str]

    def table(self, other: RecordRange | None, names: Sequence[Name]) -> NormalTable:
        """Return some forms as a table, followed by the rows of another range if one is given."""
        if other is None:
            return table_of(((name, self.forms[name].form) for name in names), self.kinds, self.n_rows)
        joined = ((name, join_cuts(self.forms[name], other.forms[name])) for name in names)
        return table_of(joined, self.kinds, self.n_rows + other.n_rows)


class RangedPairs:
    """A table in ranges of records, whose pairs are compared in tasks on an executor.

    among
        All candidates, which comparisons with the other candidates of a record need.
    """

    def __init__(
        self, normal: NormalTable, comparisons: Sequence[Comparison], among: HasPairs, executor: Executor
    ) -> None:
        self.normal, self.comparisons, self.executor = normal, tuple(comparisons), executor
        texts: dict[Name, bool] = {}
        for name, by_text in _forms_of(comparisons):
            texts[name] = by_text or texts.get(name, False)
        forms = {name: form_of(normal, *name) for name in texts}
        self.size = max(ROWS_OF_A_RANGE, -(-normal.n_rows // RANGES))
        if any(isinstance(form, PairValues) for form in forms.values()):
            self.size = max(normal.n_rows, 1)  # pair values refer to rows of the whole table
        starts = range(0, normal.n_rows, self.size)
        self._ranges = [executor.share(self._cut(forms, texts, low)) for low in starts]
        self._leads: dict[Name, Leads] = {}
        wanted = sorted({(one.field, one.form) for one in comparisons if one.measure in LEADS})
        if wanted:
            self._find_leads(wanted, among)

    def scores(self, weights: Sequence[NDArray[np.float64]], pairs: HasPairs) -> NDArray[np.float32]:
        """Return the sum of the level weights of pairs, which must be sorted by their first rows.

        weights
            The weights of the levels of each comparison, including level 0.
        """
        found = self.normal.columns.make(len(pairs.first), np.float32)
        settings = self.comparisons, weights
        for _, places, scores in self._answers(compare_pairs, pairs, settings, self._leads):
            found[places] = scores
        return found

    def _find_leads(self, names: Sequence[Name], among: HasPairs) -> None:
        """Compute the leads of all rows, in tasks."""
        count = self.normal.n_rows
        found = {name: Leads(*(np.zeros(count, np.float32) for _ in range(2))) for name in names}
        for rows, _, answer in self._answers(best_of_pairs, among, (names,), {}):
            for name, best in zip(names, answer, strict=True):
                found[name].add(rows, best)
        self._leads = found

    def _answers(
        self,
        function: Callable[..., Any],
        pairs: HasPairs,
        settings: tuple[Any, ...],
        leads: Mapping[Name, Leads],
    ) -> Iterator[tuple[Int32s, Int64s, Any]]:
        """Yield the rows of each task, the places of its pairs, and its answer."""
        asked: dict[int, tuple[Int32s, Int64s]] = {}

        def tasks() -> Iterator[tuple[Any, ...]]:
            for number, (one, two, places) in enumerate(self._pieces(pairs)):
                first, second = np.array(pairs.first[places]), np.array(pairs.second[places])
                own = self._rows(one) if one == two else np.append(self._rows(one), self._rows(two))
                asked[number] = own, places
                first -= own[0]
                second -= np.int32(two * self.size - (0 if one == two else len(self._rows(one))))
                known = {name: best.rows(own) for name, best in leads.items()}
                ends = self._ranges[one], None if one == two else self._ranges[two]
                yield (*ends, first, second, known, *settings)
            release(pairs.first, pairs.second)

        for number, answer in self.executor.stream(function, tasks()):
            yield (*asked.pop(number), answer)

    def _pieces(self, pairs: HasPairs) -> Iterator[tuple[int, int, Int64s]]:
        """Yield two ranges, which may be the same, and the positions of some pairs across them."""
        starts = np.minimum(np.arange(len(self._ranges) + 1) * self.size, self.normal.n_rows)
        edges = np.searchsorted(pairs.first, starts.astype(np.int32))  # int32 avoids a copy of the first rows
        for one, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            other = (np.asarray(pairs.second[low:high]) // self.size).astype(np.uint8)
            for two in np.unique(other).tolist():
                places = low + np.flatnonzero(other == two)
                most = PAIRS_OF_A_TASK if one == two else 4 * PAIRS_OF_A_TASK
                for begin in range(0, len(places), most):
                    yield one, two, places[begin : begin + most]

    def _rows(self, number: int) -> Int32s:
        """Return the rows of a range."""
        low = number * self.size
        return np.arange(low, min(low + self.size, self.normal.n_rows), dtype=np.int32)

    def _cut(self, forms: Mapping[Name, Form], texts: Mapping[Name, bool], low: int) -> RecordRange:
        """Return the forms of the range that starts at row ``low``."""
        rows = self._rows(low // self.size)
        cut = {name: cut_rows(form, rows, texts=texts[name]) for name, form in forms.items()}
        self.normal.columns.rest()
        given = {field for field, form in forms if field in self.normal and form in self.normal[field]}
        return RecordRange(len(rows), cut, {field: self.normal[field].kind for field in given})


def compare_pairs(
    one: RecordRange,
    two: RecordRange | None,
    first: Int32s,
    second: Int32s,
    leads: Mapping[Name, Leads],
    comparisons: Sequence[Comparison],
    weights: Sequence[NDArray[np.float64]],
) -> NDArray[np.float32]:
    """Return the scores of the pairs of a task, computed by one thread."""
    with Team(1) as team:
        comparer = Comparer(one.table(two, list(one.forms)), comparisons, leads)
        return comparer.scores(weights, first, second, team)


def best_of_pairs(
    one: RecordRange,
    two: RecordRange | None,
    first: Int32s,
    second: Int32s,
    leads: Mapping[Name, Leads],
    names: Sequence[Name],
) -> list[Leads]:
    """Return the leads of each row among the pairs of a task, for some forms."""
    pairs, normal = OverlapPairs(first, second), one.table(two, names)
    found = (Leads.among(form_of(normal, *name), pairs) for name in names)  # type: ignore[arg-type]
    return [best._replace(cosine=None) for best in found]


def _forms_of(comparisons: Sequence[Comparison]) -> Iterator[tuple[Name, bool]]:
    """Yield the names of the forms that are needed, and whether their texts are needed as well."""
    for one in comparisons:
        if one.measure == GIVEN_NAMES:
            yield from (((one.field, form), False) for form in _OF_GIVEN_NAMES)
        else:
            form = "source" if one.measure == PAIR else one.form
            yield (one.field, form), one.measure in _BY_TEXT
