"""Read true flows from a table, in the layout of the flows that a model infers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from factorwise.apps.collective.counts import ONLY, places_of
from factorwise.apps.collective.flows import Flows
from factorwise.errors import DataFileError
from factorwise.io.listing import some
from factorwise.io.tables.keyed_rows import RENAME, KeyedRows, in_order, read_keyed_rows
from factorwise.io.tables.reading import TableSource
from factorwise.metrics.flows import FlowScore, score_flows
from factorwise.types import Floats

Move = tuple[str, str, str, str]  # sequence, time, from, to
NUMBERS = ("expected", "count")


def read_flows(source: TableSource) -> tuple[KeyedRows, Floats]:
    """Read a table with time, from, to, expected (or count) and, for several sequences, sequence."""
    rows = read_keyed_rows(source, keys=("time", "from", "to"), optional_keys=("sequence",))
    column = next((name for name in NUMBERS if name in rows.numbers), None)
    if column is None:
        raise DataFileError(
            f"{rows.origin} has neither a column 'expected' nor 'count'. Its columns are"
            f" {', '.join(map(repr, [*rows.keys, *rows.numbers]))}. {RENAME}"
        )
    members = rows.numbers[column]
    for row in np.flatnonzero(~(np.isfinite(members) & (members >= 0))).tolist():
        raise DataFileError(
            f"{rows.where(row)} (time {rows.keys['time'][row]!r}, from {rows.keys['from'][row]!r} to"
            f" {rows.keys['to'][row]!r}): {members[row]} members. A flow must be finite and at least zero."
        )
    return rows, members


def score_tables(found: TableSource, truth: TableSource) -> tuple[FlowScore, dict[str, int]]:
    """Compare two tables of flows; return the score and the number of places, steps and flows."""
    ours, theirs = _moves(found), _moves(truth)
    _check_overlap(ours, theirs, found, truth)
    moves = [*ours, *(move for move in theirs if move not in ours)]
    expected, true = (np.array([side.get(move, 0.0) for move in moves]) for side in (ours, theirs))
    places = {place for move in moves for place in move[2:]}
    steps = {move[:2] for move in moves}
    # moves that neither table contains are zero in both; they enter the means
    absent = max(len(steps) * len(places) ** 2 - len(moves), 0)
    stays = np.array([source == target for _, _, source, target in moves] + [False] * absent)
    score = score_flows(np.append(expected, np.zeros(absent)), np.append(true, np.zeros(absent)), stays)
    return score, {"places": len(places), "steps": len(steps), "found": len(ours), "true": len(theirs)}


def flows_like(flows: Flows, source: TableSource) -> list[Floats]:
    """Return true flows from a table as one array for each sequence, shaped like its ``expected``."""
    return true_flows(flows.places, {series.name: series.steps for series in flows.series}, source)


def true_flows(
    places: Sequence[str], steps: Mapping[str, Sequence[str]], source: TableSource
) -> list[Floats]:
    """Return true flows from a table, float64[steps, from, to] for each sequence.

    steps
        Names of the steps of each sequence.
    """
    rows, members = read_flows(source)
    starts, ends = (places_of(rows, column, places) for column in ("from", "to"))
    names = rows.keys.get("sequence") or [next(iter(steps))] * len(rows)
    arrays = {name: np.zeros((len(own), len(places), len(places))) for name, own in steps.items()}
    order = {name: {step: k for k, step in enumerate(own)} for name, own in steps.items()}
    for row, (name, time) in enumerate(zip(names, rows.keys["time"], strict=True)):
        if name not in arrays or time not in order[name]:
            known = f"its steps are {some(steps[name])}" if name in steps else "it is not among them"
            raise DataFileError(
                f"{rows.where(row)}: the counts have no step at time {time!r} of sequence {name!r}. Their"
                f" sequences are {some(in_order(steps))}; {known}. Give the flows that belong to the counts."
            )
        arrays[name][order[name][time], starts[row], ends[row]] += members[row]
    return list(arrays.values())


def _check_overlap(
    ours: Mapping[Move, float], theirs: Mapping[Move, float], found: TableSource, truth: TableSource
) -> None:
    """Raise an error if two tables have no sequence, time or place in common."""
    names = [source if isinstance(source, str) else "the table" for source in (found, truth)]
    kinds: dict[str, Callable[[Move], Iterable[str]]] = {
        "sequence": lambda move: move[:1],
        "time": lambda move: move[1:2],
        "place": lambda move: move[2:],
    }
    for what, parts in kinds.items():
        mine, other = ([part for move in moves for part in parts(move)] for moves in (ours, theirs))
        if set(mine).isdisjoint(other):
            raise DataFileError(
                f"{names[0]} and {names[1]} have no {what} in common: {some(mine)} against {some(other)}."
                " Give the true flows of the same counts."
            )


def _moves(source: TableSource) -> dict[Move, float]:
    rows, members = read_flows(source)
    names = rows.keys.get("sequence") or [ONLY] * len(rows)
    moves: dict[Move, float] = {}
    keys = zip(names, rows.keys["time"], rows.keys["from"], rows.keys["to"], strict=True)
    for row, move in enumerate(keys):
        if move in moves:
            raise DataFileError(
                f"{rows.where(row)}: time {move[1]!r}, from {move[2]!r} to {move[3]!r} occurs twice."
                " Give one record for each."
            )
        moves[move] = float(members[row])
    return moves
