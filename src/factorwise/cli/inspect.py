"""``factorwise inspect``: show the content of a model file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np

from factorwise.cli.files import STANDARD
from factorwise.cli.learned_weights import TOP, curve, curve_lines, largest, weight_lines
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, size_text
from factorwise.cli.resolve.model import resolution_entry, resolution_lines
from factorwise.io.models.files import FORMAT_VERSION, ModelFile, read_model
from factorwise.io.models.weights import weight_blocks

#: Readers of the models that are learned by walking; imported only for those.
ESTIMATORS = {
    "alignment": ("factorwise.apps.alignment.estimator", "OntologyAligner"),
    "coreference": ("factorwise.apps.coreference.estimator", "CoreferenceResolver"),
}


@verb(example="factorwise inspect tagger.fw --json")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.fw")
def command(options: Options, file: Path) -> None:
    """Show the content of a model file, after checking it completely.

    Prints kind, format, provenance, metadata, arrays and weight blocks; of a model that was learned by
    walking (coreference, alignment) also the learning curve and the largest weights; of one that resolves
    records its fields, blocking rules, training and largest weights. With --verbose the metadata is shown
    with its values, and all weights.
    """
    if str(file) == STANDARD:
        raise click.UsageError("FILE.fw is '-', but standard input is not read here: give a model file.")
    model = read_model(file)
    document = describe(model, file, with_values=options.verbose)
    document["learned"] = _learned(model.kind, file, None if options.verbose else TOP)
    if model.kind == "resolution":
        document["resolution"] = resolution_entry(file, None if options.verbose else TOP)
    emit(document, _lines(document), as_json=options.json)


def describe(model: ModelFile, file: Path, *, with_values: bool) -> dict[str, Any]:
    """Return a model file's description as JSON values."""
    metadata = dict(model.metadata)
    return {
        "file": file.name,
        "bytes": file.stat().st_size,
        "kind": model.kind,
        "format_version": model.format_version,
        "provenance": dict(model.provenance),
        "metadata": metadata if with_values else {key: _summary(value) for key, value in metadata.items()},
        "arrays": [
            {"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "bytes": array.nbytes}
            for name, array in model.arrays.items()
        ],
        "weight_blocks": _blocks(model),
    }


def _summary(value: Any) -> Any:
    """Return short values unchanged, and the size of long ones."""
    if isinstance(value, str):
        return value if len(value) <= 60 else f"text of {len(value)} characters"
    if isinstance(value, list):
        return f"list of {len(value)}"
    if isinstance(value, dict):
        return f"object with {', '.join(value)}" if 0 < len(value) <= 6 else f"object with {len(value)} keys"
    return value


def _blocks(model: ModelFile) -> list[dict[str, Any]]:
    weights = model.arrays.get("weights")
    return [
        {
            "name": name,
            "start": part.start,
            "stop": part.stop,
            "nonzero": int(np.count_nonzero(weights[part])),
            "largest": _finite(float(np.max(np.abs(weights[part]), initial=0.0))),
        }
        for name, part in (weight_blocks(model) or {}).items()
        if weights is not None
    ]


def _learned(kind: str, file: Path, top: int | None) -> dict[str, Any] | None:
    """Return learning curve and weights of a model learned by walking as JSON values; None for others."""
    if kind not in ESTIMATORS:
        return None
    module, name = ESTIMATORS[kind]
    loaded = getattr(import_module(module), name).load(file)
    return {"curve": curve(loaded.history_), "weights": largest(loaded.weights_by_name(), top)}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"{document['file']}  ({size_text(document['bytes'])}, complete)"
    version = document["format_version"]
    yield from aligned(
        [
            ("kind", document["kind"]),
            ("format", f"{version} (this factorwise writes {FORMAT_VERSION})"),
        ]
    )
    yield from _section("provenance", [(key, _text(entry)) for key, entry in document["provenance"].items()])
    yield from _section("metadata", [(key, _text(entry)) for key, entry in document["metadata"].items()])
    arrays = [
        (
            entry["name"],
            entry["dtype"],
            " x ".join(map(str, entry["shape"])) or "scalar",
            size_text(entry["bytes"]),
        )
        for entry in document["arrays"]
    ]
    yield from _section("arrays", arrays)
    blocks = [
        (
            entry["name"],
            f"{entry['start']}..{entry['stop']}",
            f"{entry['nonzero']} not zero",
            f"largest {'not finite' if entry['largest'] is None else format(entry['largest'], '.4g')}",
        )
        for entry in document["weight_blocks"]
    ]
    yield from _section("weight blocks", blocks)
    if document["learned"]:
        yield from curve_lines(document["learned"]["curve"], "metric")
        yield from weight_lines(document["learned"]["weights"])
    if "resolution" in document:
        yield from resolution_lines(document["resolution"])


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield title if rows else f"{title}: none"
    yield from aligned(rows)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
