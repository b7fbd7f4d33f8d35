"""Resolution without labels on altered tables: what a user may bring, made from the sets it was developed on.

    python experiments/resolution_perturbed.py                       # every change of every set
    python experiments/resolution_perturbed.py --sets febrl3 --changes shops uppercase

Only sets of the developed half of `resolution_unlabelled` are changed, at most MOST records of each. Columns:
every record alone, records with an equal value of what they are found to be about ("same identity"),
the best simple rule chosen with the truth, the answer, and its estimate. A row is marked where the answer is
below the best rule by more than 0.03, or below "same identity" or "alone" by more than 0.01.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import resolution_unlabelled as unlabelled
from resolution_unlabelled import DEVELOPED, SETS, Task, best_rule, f1_of, normal_values, resolve

from factorwise import EntityResolver
from factorwise.metrics.clustering import b_cubed
from factorwise.types import Ints

MOST = 1_500
BELOW_RULE, BELOW_SIMPLE = 0.03, 0.01


def changed(task: Task, about: tuple[str, ...]) -> dict[str, Callable[[], Task]]:
    """Return what may be done to a table that is about some columns."""
    table, names = task.table, task.table.column_names
    texts = [name for name in names if name not in ("id", "source")]
    shops = two_shops(task)
    return {
        "as it is": lambda: task,
        "no source": lambda: Task(table.drop_columns([n for n in ("source",) if n in names]), task.truth),
        "identity alone": lambda: Task(table.select(["id", *about]), task.truth),
        "no identity": lambda: Task(table.drop_columns(list(about)), task.truth),
        "headers": lambda: Task(table.rename_columns(plain_headers(names)), task.truth),
        "codes": lambda: Task(table.append_column("record_no", serials(table.num_rows)), task.truth),
        "repeated": lambda: repeated(task),
        "order": lambda: Task(table.select(names[::-1]), task.truth),
        "uppercase": lambda: Task(mapped(table, texts, str.upper), task.truth),
        "shops": lambda: shops,
        "shops, no column": lambda: Task(shops.table.drop_columns(["source"]), shops.truth),
        "shops, year": lambda: decorated(shops, about[-1], "{} ({})"),
        "shops, form": lambda: decorated(shops, about[-1], "{} GmbH"),
        "shops, prefix": lambda: decorated(shops, about[0], "Shop: {}"),
        "shops, no column, year": lambda: Task(
            decorated(shops, about[-1], "{} ({})").table.drop_columns(["source"]), shops.truth
        ),
        "shops, a third twice": lambda: two_shops(task, twice=1 / 3),
        "few": lambda: taken(task, np.arange(min(150, table.num_rows))),
    }


def taken(task: Task, rows: Ints) -> Task:
    """Return some rows, as records with ids of their own."""
    table = task.table.take(pa.array(rows))
    place = table.column_names.index("id")
    ids = pa.array([str(k) for k in range(len(rows))])
    return Task(table.set_column(place, "id", ids), task.truth[rows])


def plain_headers(names: list[str]) -> list[str]:
    """Return headers that say nothing."""
    return [name if name == "id" else f"col_{k}" for k, name in enumerate(names)]


def serials(n: int) -> pa.Array:
    """Return a different code for every record, in an order of chance."""
    return pa.array([f"R{k:06d}" for k in np.random.default_rng(1).permutation(n)])


def repeated(task: Task) -> Task:
    """Return a table in which records stand up to twenty times."""
    rng = np.random.default_rng(2)
    count = np.minimum(rng.geometric(0.3, len(task.truth)), 20)
    return taken(task, rng.permutation(np.repeat(np.arange(len(task.truth)), count)))


def mapped(table: pa.Table, columns: list[str], change: Callable[[str], str]) -> pa.Table:
    """Return a table with the texts of some columns changed."""
    for name in columns:
        column = table.column(name)
        if pa.types.is_string(column.type):
            values = [None if value is None else change(value) for value in column.to_pylist()]
            table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.string()))
    return table


def two_shops(task: Task, twice: float = 0.0) -> Task:
    """Return at most two records of each entity, one in either of two shops.

    twice
        Share of the entities that one shop has in two records.
    """
    rng = np.random.default_rng(3)
    order = rng.permutation(len(task.truth))
    order = order[np.argsort(task.truth[order], kind="stable")]
    _, start, count = np.unique(task.truth[order], return_index=True, return_counts=True)
    number = np.arange(len(order)) - np.repeat(start, count)
    more = np.repeat(rng.random(len(count)) < twice, count)
    shop = np.where(number < 2, (number + np.repeat(rng.integers(0, 2, len(count)), count)) % 2, 0)
    kept = rng.permutation(np.flatnonzero((number < 2) | ((number == 2) & more)))
    found = taken(task, order[kept])
    columns = [name for name in found.table.column_names if name != "source"]
    source = pa.array(np.array(["north", "south"])[shop[kept]])
    return Task(found.table.select(columns).append_column("source", source), found.truth)


def decorated(task: Task, column: str, form: str) -> Task:
    """Return a table in which the values of one shop have something around them."""
    rng = np.random.default_rng(4)
    values = [
        form.format(value, 1950 + int(rng.integers(0, 60))) if value and source == "south" else value
        for value, source in zip(
            task.table.column(column).to_pylist(), task.table.column("source").to_pylist(), strict=True
        )
    ]
    place = task.table.column_names.index(column)
    return Task(task.table.set_column(place, column, pa.array(values, pa.string())), task.truth)


def rows_of(name: str, wanted: list[str]) -> Iterator[str]:
    """Return a row for each change of a set."""
    task = unlabelled.load(name)
    about = EntityResolver(n_jobs=1).fit(task.table, id="id").knowledge_.unlabelled
    assert about is not None
    for change, make in changed(task, about.about.columns).items():
        if wanted and change not in wanted:
            continue
        begun = time.process_time()
        one = make()
        if set(one.table.column_names) <= {"id", "source"}:
            continue
        alone = b_cubed(one.truth, np.arange(len(one.truth))).f1
        rule, rule_f1 = best_rule(one)
        score, resolver, seconds = resolve(one)
        model = resolver.knowledge_.unlabelled
        assert model is not None
        same = f1_of(one.truth, same_identity(one, model.about.columns))
        report = model.report
        fell = score.f1 < rule_f1 - BELOW_RULE or score.f1 < max(same, alone) - BELOW_SIMPLE
        yield (
            f"| {name} | {change} | {alone:.3f} | {same:.3f} | {rule_f1:.3f} {rule} | {score.f1:.3f}"
            f" ({score.precision:.3f} / {score.recall:.3f}) | {report['precision']:.3f} /"
            f" {report['recall']:.3f} | {model.about.phrase}{', one per source' * model.one_per_source}"
            f"{', safe' * model.is_safe}, {len(report['warnings'])} warnings | {'**fell**' * fell} |"
            f" {seconds:.1f} of {time.process_time() - begun:.1f} s |"
        )


def same_identity(task: Task, columns: tuple[str, ...]) -> list[str | None]:
    """Return the normal value of what records are about."""
    values = zip(*(normal_values(task.table.column(name)) for name in columns), strict=True)
    return [" ".join(part for part in parts if part) or None for parts in values]


def main() -> None:
    """Print a row for each change of each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=[name for name in SETS if name in DEVELOPED])
    parser.add_argument("--changes", nargs="*", default=[])
    options = parser.parse_args()
    unlabelled.MOST = MOST
    print("| set | change | alone | same identity | best rule | this (P / R) | estimate | about | | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.sets:
        for row in rows_of(name, options.changes):
            print(row, flush=True)


if __name__ == "__main__":
    main()
