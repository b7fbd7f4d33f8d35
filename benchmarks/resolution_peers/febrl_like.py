"""Records of made-up persons in the manner of Febrl's third data set, by the million in seconds.

    febrl_like.py RECORDS SEED RECORDS.csv [TRUTH.csv]

With a second file the entities go there, otherwise they are a column of the first. Three records in five are
originals. An original has up to five duplicates, in numbers distributed as in that set, and a field of a
duplicate is changed or missing as often as there: emptied, replaced by another value, exchanged with its
neighbour, or mistyped by one or two of the four edits.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

Texts = NDArray[np.bytes_]

ORIGINALS = 0.6
DUPLICATES = np.array([0.316, 0.220, 0.182, 0.138, 0.144])  # of originals with one to five of them
SWAPPED_NAMES = 0.043
SWAPPED_ADDRESSES = 0.06
REPLACED = 0.25  # of the changed fields that are not emptied
WIDTH = 32


class Column(NamedTuple):
    """How often a field is missing in originals, changed in duplicates, and emptied in duplicates."""

    missing: float
    changed: float
    emptied: float


COLUMNS = {
    "given_name": Column(0.020, 0.27, 0.023),
    "surname": Column(0.008, 0.29, 0.014),
    "street_number": Column(0.030, 0.17, 0.036),
    "address_1": Column(0.020, 0.32, 0.021),
    "address_2": Column(0.090, 0.37, 0.091),
    "suburb": Column(0.010, 0.27, 0.013),
    "postcode": Column(0.000, 0.17, 0.000),
    "state": Column(0.011, 0.05, 0.013),
    "date_of_birth": Column(0.022, 0.08, 0.017),
    "soc_sec_id": Column(0.000, 0.10, 0.000),
}
STATES = ["nsw", "vic", "qld", "wa", "sa", "tas", "act", "nt"]
STATE_SHARES = [0.32, 0.26, 0.18, 0.095, 0.09, 0.025, 0.02, 0.01]
STREETS = [" street", " place", " crescent", " close", " court", " avenue", " circuit", " drive", " road"]
HOMES = [" village", " park", " units", " farm", " house"]


def vocabulary(rng: np.random.Generator, size: int, syllables: int) -> Texts:
    """Make different words that can be spoken."""
    onsets = np.array(
        ["b", "br", "c", "ch", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "st", "t", "w"]
    )
    vowels = np.array(["a", "e", "i", "o", "u", "ai", "ea", "ie", "oo", "y"])
    codas = np.array(["", "", "l", "n", "r", "s", "t", "ll", "ck", "m", "nd", "th"])
    made = np.empty(0, "S32")
    while len(made) < size:
        words = np.full(size, "", "U32")
        for _ in range(syllables):
            for part in (onsets, vowels, codas):
                words = np.char.add(words, rng.choice(part, size))
        made = np.unique(np.concatenate([made, words.astype("S32")]))
    return rng.permutation(made)[:size]


def drawn(rng: np.random.Generator, words: Texts, count: int, flatness: float) -> Texts:
    """Draw with a frequency that falls with the rank, the slower the higher ``flatness``."""
    shares = np.cumsum(1.0 / (np.arange(len(words)) + flatness))
    return words[np.searchsorted(shares, rng.random(count) * shares[-1])]


def originals(rng: np.random.Generator, count: int) -> dict[str, Texts]:
    """Draw persons; the words their names and addresses are made of are the same for every seed."""
    spoken = np.random.default_rng(0)
    given, surnames = vocabulary(spoken, 3_000, 2), vocabulary(spoken, 30_000, 3)
    suburbs = vocabulary(spoken, 5_000, 3)
    streets = np.char.add(vocabulary(spoken, 20_000, 2), spoken.choice(np.array(STREETS, "S"), 20_000))
    homes = np.char.add(vocabulary(spoken, 8_000, 2), spoken.choice(np.array(HOMES, "S"), 8_000))
    postcodes = spoken.permutation(np.arange(1_000, 10_000))[:2_500].astype("S")
    days = np.datetime64("1900-01-01") + rng.integers(0, 36_500, count)
    fields = {
        "given_name": drawn(rng, given, count, 10.0),
        "surname": drawn(rng, surnames, count, 30.0),
        "street_number": np.minimum(rng.geometric(0.02, count), 999).astype("S"),
        "address_1": drawn(rng, streets, count, 200.0),
        "address_2": drawn(rng, homes, count, 100.0),
        "suburb": drawn(rng, suburbs, count, 50.0),
        "postcode": drawn(rng, postcodes, count, 100.0),
        "state": rng.choice(np.array(STATES, "S"), count, p=STATE_SHARES),
        "date_of_birth": np.char.replace(days.astype("S10"), b"-", b""),
        "soc_sec_id": different(rng, count).astype("S"),
    }
    for name, column in COLUMNS.items():
        fields[name] = np.where(rng.random(count) < column.missing, b"", fields[name]).astype(f"S{WIDTH}")
    return fields


def different(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Draw numbers of nine digits without repetition."""
    found = np.unique(rng.integers(100_000_000, 1_000_000_000, count + count // 100 + 100))
    return rng.permutation(found)[:count]


def mistyped(rng: np.random.Generator, values: Texts) -> Texts:
    """Delete, insert, substitute or transpose a letter of each value that has two or more."""
    letters = np.ascontiguousarray(values, f"S{WIDTH}").view(np.uint8).reshape(len(values), WIDTH)
    length = np.char.str_len(values)
    place = (rng.random(len(values)) * np.maximum(length - 1, 1)).astype(np.int64)[:, None]
    kind = rng.integers(0, 4, len(values))[:, None]
    at = np.broadcast_to(np.arange(WIDTH), letters.shape)
    source = np.where(kind == 0, at + (at >= place), at)  # deleted
    source = np.where(kind == 1, at - (at > place), source)  # inserted
    source = np.where((kind == 3) & (at == place), at + 1, source)  # transposed
    source = np.where((kind == 3) & (at == place + 1), at - 1, source)
    edited = np.take_along_axis(letters, np.clip(source, 0, WIDTH - 1), axis=1)
    digits = (letters[:, 0] >= ord("0")) & (letters[:, 0] <= ord("9"))
    letter = np.where(
        digits, ord("0") + rng.integers(0, 10, len(values)), ord("a") + rng.integers(0, 26, len(values))
    )
    edited = np.where(((kind == 1) | (kind == 2)) & (at == place), letter[:, None], edited).astype(np.uint8)
    edited[:, -1] = 0
    result = np.ascontiguousarray(edited).view(f"S{WIDTH}").reshape(len(values))
    return np.where(length >= 2, result, values)


def duplicated(
    rng: np.random.Generator, fields: dict[str, Texts], chosen: NDArray[np.int64]
) -> dict[str, Texts]:
    """Copy the chosen originals with faults."""
    count = len(chosen)
    copies = {name: values[chosen].copy() for name, values in fields.items()}
    for name, column in COLUMNS.items():
        values, roll = copies[name], rng.random(count)
        emptied = roll < column.emptied
        replaced = ~emptied & (roll < column.emptied + REPLACED * (column.changed - column.emptied))
        typed = ~emptied & ~replaced & (roll < column.changed)
        values[emptied] = b""
        values[replaced] = rng.choice(fields[name], int(replaced.sum()))
        values[typed] = mistyped(rng, values[typed])
        twice = typed & (rng.random(count) < 0.3)
        values[twice] = mistyped(rng, values[twice])
    for one, other, share in (
        ("given_name", "surname", SWAPPED_NAMES),
        ("address_1", "address_2", SWAPPED_ADDRESSES),
    ):
        swapped = rng.random(count) < share
        kept = copies[one][swapped].copy()
        copies[one][swapped] = copies[other][swapped]
        copies[other][swapped] = kept
    return copies


def generate(records: int, seed: int) -> pa.Table:
    """Return a table of records in random order with the columns id, entity and the fields."""
    rng = np.random.default_rng(seed)
    persons = int(ORIGINALS * records)
    fields = originals(rng, persons)
    order = rng.permutation(persons)
    numbers = 1 + rng.choice(len(DUPLICATES), persons, p=DUPLICATES)
    chosen = np.repeat(order, numbers)[: records - persons]
    copies = duplicated(rng, fields, chosen)
    entity = np.concatenate([np.arange(persons), chosen])
    shuffled = rng.permutation(records)
    columns = {"id": pa.array(np.arange(records)), "entity": pa.array(entity[shuffled])}
    for name in COLUMNS:
        both = np.concatenate([fields[name], copies[name]])[shuffled]
        columns[name] = pa.array(both, pa.binary()).cast(pa.string())
    return pa.table(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("records", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("out")
    parser.add_argument("truth", nargs="?")
    options = parser.parse_args()
    table = generate(options.records, options.seed)
    if options.truth:
        pyarrow.csv.write_csv(table.select(["id", "entity"]), options.truth)
        table = table.drop_columns(["entity"])
    pyarrow.csv.write_csv(table, options.out)


if __name__ == "__main__":
    main()
