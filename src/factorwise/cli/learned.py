"""What verbs tell of weights that were learned by walking: the learning curve, and the weights by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from factorwise.cli.output import aligned
from factorwise.errors import ModelFileError
from factorwise.io.models.files import read_model

#: How many weights are listed unless all are asked for.
TOP = 20

RESOLUTION = "resolution"  # the kind of model files, named here too: its own module loads the compiler

#: The group of verbs for each kind of model file.
VERB_OF_KIND = {
    "alignment": "align",
    "chain-crf": "tag",
    "collective": "flows",
    "coreference": "coref",
    RESOLUTION: "resolve",
}


def check_kind(path: Path, kind: str) -> None:
    """Refuse a model file of another kind, naming the verbs that it is for."""
    found = read_model(path).kind
    if found != kind:
        other = VERB_OF_KIND.get(found)
        use = f"Use it with `factorwise {other}`" if other else "See what it holds with `factorwise inspect`"
        raise ModelFileError(
            f"{path}: holds a model of kind {found!r}, but {kind!r} was asked for. {use}, or train one with"
            f" `factorwise {VERB_OF_KIND[kind]} fit`."
        )


def curve(history: Iterable[NamedTuple]) -> list[dict[str, Any]]:
    """Return the passes as JSON values."""
    return [{name: _finite(value) for name, value in record._asdict().items()} for record in history]


def largest(weights: Mapping[str, float], top: int | None) -> list[dict[str, Any]]:
    """Return the first ``top`` weights, the largest in size first, as JSON values; None for all of them."""
    return [{"name": name, "weight": weight} for name, weight in list(weights.items())[:top]]


def curve_lines(passes: Sequence[Mapping[str, Any]], metric: str) -> Iterator[str]:
    """Write the learning curve for people, a line a pass."""
    yield "learning curve" if passes else "learning curve: none"
    if passes:
        head = ("pass", "steps", "updates", "misranked", "accepted", metric)
        rows: list[tuple[str, ...]] = [head, *map(_pass_row, passes)]
        yield from aligned(rows)


def pass_text(record: NamedTuple, metric: str) -> str:
    """Say in one line how a pass went."""
    entry = curve([record])[0]
    number, steps, updates, misranked, accepted, value = _pass_row(entry)
    return (
        f"pass {number}: {steps} steps, {updates} updates, {misranked} misranked, {accepted} accepted,"
        f" {metric} {value}"
    )


def weight_lines(weights: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Write weights for people."""
    yield "largest weights" if weights else "largest weights: none"
    yield from aligned([(f"{entry['weight']:+.4f}", entry["name"]) for entry in weights])


def _pass_row(record: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (str(record[name]) for name in ("number", "steps", "updates", "misranked"))
    value = "-" if record["value"] is None else f"{record['value']:.4f}"
    return (*counts, f"{record['accepted']:.1%}", value)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
