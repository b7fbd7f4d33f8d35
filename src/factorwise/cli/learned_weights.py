"""Output of weights learned by walking: the learning curve, and the weights by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from factorwise.cli.output import aligned

#: Number of weights listed by default.
TOP = 20


def curve(history: Iterable[NamedTuple]) -> list[dict[str, Any]]:
    """Return the passes as JSON values."""
    return [{name: _finite(value) for name, value in record._asdict().items()} for record in history]


def largest(weights: Mapping[str, float], top: int | None) -> list[dict[str, Any]]:
    """Return the first ``top`` weights, largest absolute value first, as JSON values; None for all."""
    return [{"name": name, "weight": weight} for name, weight in list(weights.items())[:top]]


def weights_entry(weights: Mapping[str, float], top: int | None) -> dict[str, Any]:
    """Return the number of weights, of nonzero weights, and the largest ``top`` (None for all)."""
    active = sum(value != 0.0 for value in weights.values())
    return {"all": len(weights), "active": active, "largest": largest(weights, top)}


def curve_lines(passes: Sequence[Mapping[str, Any]], metric: str) -> Iterator[str]:
    """Return the learning curve as text, a line per pass."""
    yield "learning curve" if passes else "learning curve: none"
    if passes:
        head = ("pass", "steps", "updates", "misranked", "accepted", metric)
        rows: list[tuple[str, ...]] = [head, *map(_pass_row, passes)]
        yield from aligned(rows)


def pass_text(record: NamedTuple, metric: str) -> str:
    """Describe a pass in one line."""
    entry = curve([record])[0]
    number, steps, updates, misranked, accepted, value = _pass_row(entry)
    return (
        f"pass {number}: {steps} steps, {updates} updates, {misranked} misranked, {accepted} accepted,"
        f" {metric} {value}"
    )


def weight_lines(weights: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return weights as text."""
    yield "largest weights" if weights else "largest weights: none"
    yield from aligned([(f"{entry['weight']:+.4f}", entry["name"]) for entry in weights])


def _pass_row(record: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (str(record[name]) for name in ("number", "steps", "updates", "misranked"))
    value = "-" if record["value"] is None else f"{record['value']:.4f}"
    return (*counts, f"{record['accepted']:.1%}", value)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
