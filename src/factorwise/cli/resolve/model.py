"""What a model that resolves records has learned, for people and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.cli.learned_weights import weight_lines, weights_entry
from factorwise.cli.output import aligned

if TYPE_CHECKING:  # numba and Arrow take their time to load
    from factorwise.apps.resolution.knowledge import Knowledge
    from factorwise.apps.resolution.schema.fields import FieldSpec


def resolution_entry(file: Path, top: int | None) -> dict[str, Any]:
    """Return fields, rules, training and the ``top`` largest weights (None for all) of a model file."""
    from factorwise.apps.resolution.knowledge import Knowledge

    knowledge = Knowledge.load(file)
    return {
        "fields": field_entries(knowledge.fields),
        "rules": [rule.name for rule in knowledge.rules],
        "comparisons": len(knowledge.comparisons),
        "temperature": knowledge.temperature,
        "filter": filter_entry(knowledge),
        "training": dict(knowledge.training),
        "weights": weight_entries(knowledge, top),
    }


def filter_entry(knowledge: Knowledge) -> dict[str, int] | None:
    """Return what the filter of pairs did where it was learned; None if there is none."""
    return None if knowledge.pair_filter is None else knowledge.pair_filter.report._asdict()


def filter_text(entry: Mapping[str, int]) -> str:
    """Write what `filter_entry` gave."""
    lost = f"loses {entry['lost']:,} of {entry['true_pairs']:,} true ones"
    return f"{entry['kept']:,} of {entry['pairs']:,} pairs are worth comparing; {lost}"


def resolution_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    """Write what `resolution_entry` gave."""
    yield from field_lines(entry["fields"])
    yield "blocking rules" if entry["rules"] else "blocking rules: none"
    yield from aligned([(name,) for name in entry["rules"]])
    if entry["filter"] is not None:
        yield f"filter: {filter_text(entry['filter'])}"
    yield "training"
    training = {"temperature": entry["temperature"], **entry["training"]}
    reliability = training.pop("reliability", None)  # models of earlier versions have none
    if reliability:
        training["calibration_error"] = reliability["error"]
    training["probabilities"] = describe_calibration(entry["training"])
    yield from aligned([(name.replace("_", " "), _figure(value)) for name, value in training.items()])
    yield from weight_lines(entry["weights"]["largest"])


def field_entries(fields: Sequence[FieldSpec]) -> list[dict[str, Any]]:
    """Return the fields as JSON values."""
    return [
        {"name": one.name, "kind": one.kind, "options": dict(one.options), "note": one.note} for one in fields
    ]


def weight_entries(knowledge: Knowledge, top: int | None) -> dict[str, Any]:
    """Return how many weights there are, and the largest, as JSON values."""
    named = knowledge.weights_by_name()
    ordered = dict(sorted(named.items(), key=lambda item: (-abs(item[1]), item[0])))
    return weights_entry(ordered, top)


def field_lines(fields: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Write what the columns are taken for."""
    yield "fields" if fields else "fields: none"
    rows = [(one["name"], _kind_text(one), one["note"]) for one in fields]
    yield from aligned(rows if any(one["note"] for one in fields) else [row[:2] for row in rows])


def _kind_text(one: Mapping[str, Any]) -> str:
    details = ", ".join(f"{key} {value!r}" for key, value in one["options"].items())
    return f"{one['kind']} ({details})" if details else str(one["kind"])


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
