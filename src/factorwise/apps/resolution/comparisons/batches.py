"""Comparing pairs in batches, each of which has with it all that is looked at.

A batch is compared by a pure function in a task; the scores are the same bits as those of all pairs at once.
Comparisons with the other candidates of a record need the best of these first: each batch says what it has
seen, and that is put together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.derived import form_of
from factorwise.apps.resolution.comparisons.measures import GIVEN_NAMES
from factorwise.apps.resolution.comparisons.overlaps import LEADS, HasPairs, Leads, OverlapPairs
from factorwise.apps.resolution.comparisons.plan import Comparer, Comparison
from factorwise.apps.resolution.comparisons.sources import PAIR
from factorwise.apps.resolution.normalize.cut_rows import counted, cut_rows
from factorwise.apps.resolution.normalize.forms import Form, NormalField, NormalTable
from factorwise.distributed.executors import Executor
from factorwise.io.columns import release
from factorwise.kernels.compile.threads import Team
from factorwise.types import Ints

PAIRS_OF_A_BATCH = 1 << 19
_BY_TEXT = frozenset({"jaro-winkler", "edits", "words", PAIR})  # measures that look at texts, not at codes
_OF_GIVEN_NAMES = ("first", "root", "first_sound", "first_initial")

Name = tuple[str, str]


class PairBatch(NamedTuple):
    """Some pairs, the normal forms of the rows in them, and the best candidates of these rows.

    first, second
        In rows of ``normal``.
    """

    normal: NormalTable
    first: Ints
    second: Ints
    leads: Mapping[Name, Leads]


class BatchedPairs:
    """Pairs of the rows of a table, to be compared batch by batch.

    among
        All candidates, if some comparison is one with the other candidates of a record.
    """

    def __init__(
        self,
        normal: NormalTable,
        comparisons: Sequence[Comparison],
        among: HasPairs,
        executor: Executor,
    ) -> None:
        self.normal, self.comparisons, self.executor = normal, tuple(comparisons), executor
        self._forms: dict[Name, tuple[Form, bool]] = {}
        for name, texts in _forms_of(comparisons):
            known = self._forms.get(name)
            form = counted(form_of(normal, *name)) if known is None else known[0]
            self._forms[name] = form, texts or (known is not None and known[1])
        self._leads: dict[Name, Leads] = {}
        wanted = {(one.field, one.form) for one in comparisons if one.measure in LEADS}
        if wanted:
            self._find_leads(sorted(wanted), among)

    def scores(self, weights: Sequence[NDArray[np.float64]], pairs: HasPairs) -> NDArray[np.float32]:
        """Return the sum of the weights of the levels of pairs.

        weights
            For each comparison those of its levels, level 0 included.
        """
        found = self.normal.columns.make(len(pairs.first), np.float32)
        tasks = ((batch, self.comparisons, weights) for _, batch in self._batches(pairs, list(self._forms)))
        for place, scores in self.executor.stream(compare_pairs, tasks):
            low = place * PAIRS_OF_A_BATCH
            found[low : low + len(scores)] = scores
        return found

    def _find_leads(self, names: Sequence[Name], among: HasPairs) -> None:
        """Find the best candidates of each row."""
        count = self.normal.n_rows
        found = {name: Leads(*np.zeros((2, count), np.float32)) for name in names}
        asked: dict[int, Ints] = {}

        def tasks() -> Iterator[tuple[PairBatch, Sequence[Name]]]:
            for place, (rows, batch) in enumerate(self._batches(among, names)):
                asked[place] = rows
                yield batch, names

        for place, answers in self.executor.stream(best_of_pairs, tasks()):
            rows = asked.pop(place)
            for name, answer in zip(names, answers, strict=True):
                found[name].add(rows, answer)
        self._leads = found

    def _batches(self, pairs: HasPairs, names: Sequence[Name]) -> Iterator[tuple[Ints, PairBatch]]:
        """Yield the rows that stand in each batch, and the batch."""
        place = np.empty(self.normal.n_rows, np.int32)
        for low in range(0, len(pairs.first), PAIRS_OF_A_BATCH):
            part = slice(low, low + PAIRS_OF_A_BATCH)
            first, second = np.array(pairs.first[part]), np.array(pairs.second[part])
            there = np.zeros(self.normal.n_rows, np.bool_)
            there[first] = there[second] = True
            rows = np.flatnonzero(there)
            place[rows] = np.arange(len(rows), dtype=np.int32)
            leads = {name: found.rows(rows) for name, found in self._leads.items()}
            yield rows, PairBatch(self._cut(rows, names), place[first], place[second], leads)
            release(pairs.first, pairs.second)

    def _cut(self, rows: Ints, names: Sequence[Name]) -> NormalTable:
        """Return some rows of the forms that are compared."""
        fields: dict[str, dict[str, Form]] = {}
        derived: dict[Name, Form] = {}
        for field, name in names:
            form, texts = self._forms[field, name]
            cut = cut_rows(form, rows, texts=texts)
            release(*(getattr(form, part) for part in ("codes", "offsets") if hasattr(form, part)))
            if field in self.normal and name in self.normal[field]:
                fields.setdefault(field, {})[name] = cut
            else:
                derived[field, name] = cut
        kinds = {name: self.normal[name].kind for name in fields}
        made = NormalTable(
            len(rows), {name: NormalField(name, kinds[name], forms) for name, forms in fields.items()}
        )
        made.derived.update(derived)
        return made


def compare_pairs(
    batch: PairBatch, comparisons: Sequence[Comparison], weights: Sequence[NDArray[np.float64]]
) -> NDArray[np.float32]:
    """Return the scores of the pairs of a batch, compared in one thread."""
    with Team(1) as team:
        comparer = Comparer(batch.normal, comparisons, batch.leads)
        return comparer.scores(weights, batch.first, batch.second, team)


def best_of_pairs(batch: PairBatch, names: Sequence[Name]) -> list[Leads]:
    """Return the best candidates of each row of a batch as far as its pairs tell, for some forms."""
    pairs = OverlapPairs(batch.first, batch.second)
    found = (Leads.among(form_of(batch.normal, *name), pairs) for name in names)  # type: ignore[arg-type]
    return [one._replace(cosine=None) for one in found]


def _forms_of(comparisons: Sequence[Comparison]) -> Iterator[tuple[Name, bool]]:
    """Name the forms that are looked at, and whether their texts are."""
    for one in comparisons:
        if one.measure == GIVEN_NAMES:
            yield from (((one.field, form), False) for form in _OF_GIVEN_NAMES)
        else:
            form = "source" if one.measure == PAIR else one.form
            yield (one.field, form), one.measure in _BY_TEXT
