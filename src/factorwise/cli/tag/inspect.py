"""``factorwise tag inspect``: what a tagger has learned."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from factorwise.cli.files import check_kind
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, size_text
from factorwise.types import Floats

if TYPE_CHECKING:  # these modules load the compiler, which help does not wait for
    from factorwise.apps.tagging.model_file import SavedTagger
    from factorwise.apps.tagging.tagger import ChainTagger


@verb(example="factorwise tag inspect chunks.fw --label B-NP --top 10")
@click.argument("file", type=click.Path(path_type=Path), metavar="MODEL.fw")
@click.option("--top", type=Whole(min=0), default=20, help="How many features to list.")
@click.option("--label", metavar="LABEL", help="Only features and transitions of this label.")
def command(options: Options, file: Path, top: int, label: str | None) -> None:
    """Show what the tagger MODEL.fw has learned.

    Prints labels, sizes, settings and provenance, the features with the largest weights, and the strongest
    and the weakest transitions from label to label, and the constraints on whole sentences. With --verbose
    the provenance is shown in full.
    """
    from factorwise.apps.tagging.model_file import KIND, read_tagger

    check_kind(file, KIND)
    saved = read_tagger(file)
    if label is not None and label not in saved.tagger.classes:
        close = difflib.get_close_matches(label, saved.tagger.classes, n=1)
        known = ", ".join(saved.tagger.classes)
        remedy = f"Did you mean {close[0]!r}?" if close else f"There are: {known}."
        raise click.UsageError(f"the tagger has no label {label!r}. {remedy}")
    document = describe(saved, file, top, label)
    emit(document, _lines(document, options.verbose), as_json=options.json)


def describe(saved: SavedTagger, file: Path, top: int, label: str | None) -> dict[str, Any]:
    """Return what a tagger has learned as JSON values."""
    from factorwise.learning.chains.second_order import SecondOrder

    tagger, structure = saved.tagger, saved.tagger.structure
    transitions = _transitions(tagger, label)
    return {
        "file": file.name,
        "bytes": file.stat().st_size,
        "labels": list(tagger.classes),
        "order": 2 if isinstance(structure, SecondOrder) else 1,
        "sizes": {
            "attributes": saved.encoder.width,
            "weights": len(tagger.weights),
            "active": int(np.count_nonzero(tagger.weights)),
            "transitions": structure.size,
            "forbidden": int(np.count_nonzero(structure.to_arrays()["forbidden"])),
        },
        "settings": dict(saved.settings),
        "provenance": dict(saved.provenance),
        "features": _features(saved, top, label),
        "strongest_transitions": transitions[:top],
        "weakest_transitions": transitions[::-1][:top],
        "constraints": _constraints(tagger, label),
    }


def weights_by_template(saved: SavedTagger) -> dict[str, Floats]:
    """Return the weights of the attributes of each feature template, and of the transitions."""
    tagger, slots = saved.tagger, saved.encoder.slots()
    _, first = np.unique(slots, return_index=True)
    names = saved.encoder.names()
    slot = np.repeat(slots, np.diff(tagger.features.start))  # of each weight
    groups = {names[k].partition("=")[0]: tagger.state_weights[slot == slots[k]] for k in first.tolist()}
    return {**groups, "transitions": tagger.transition_weights}


def _features(saved: SavedTagger, top: int, label: str | None) -> list[dict[str, Any]]:
    """Return the state features with the largest absolute weights, largest first."""
    tagger, names = saved.tagger, saved.encoder.names()
    features, weights = tagger.features, tagger.state_weights
    eligible = weights != 0
    if label is not None:
        eligible &= features.label == tagger.classes.index(label)
    places = np.flatnonzero(eligible)
    chosen = places[np.argsort(-np.abs(weights[places]), kind="stable")[:top]]
    attribute = np.searchsorted(features.start, chosen, side="right") - 1
    return [
        {
            "attribute": names[code],
            "label": tagger.classes[features.label[place]],
            "weight": float(weights[place]),
        }
        for place, code in zip(chosen.tolist(), attribute.tolist(), strict=True)
    ]


def _transitions(tagger: ChainTagger, label: str | None) -> list[dict[str, Any]]:
    """Return the transitions from the largest weight to the smallest."""
    weights = tagger.transition_weights.tolist()
    named = [
        {"labels": [tagger.classes[code] for code in codes], "weight": weight}
        for codes, weight in zip(tagger.structure.transitions(), weights, strict=True)
        if weight
    ]
    kept = [entry for entry in named if label is None or label in entry["labels"]]
    return sorted(kept, key=lambda entry: -entry["weight"])


def _constraints(tagger: ChainTagger, label: str | None) -> list[dict[str, Any]]:
    """Return the constraints on whole sentences, the dearest first; those of a label name it or its type."""
    from factorwise.apps.tagging.global_tagger import constraints_of

    listed = constraints_of(tagger).to_json()
    names = {label, "" if label is None else label.partition("-")[2]}
    return [entry for entry in listed if label is None or names & set(entry["labels"])]


def _lines(document: dict[str, Any], verbose: bool) -> Iterator[str]:
    sizes = document["sizes"]
    yield f"{document['file']}  ({size_text(document['bytes'])}, complete)"
    yield from aligned(
        [
            ("labels", f"{len(document['labels'])}: {', '.join(document['labels'])}"),
            ("order", str(document["order"])),
            ("attributes", str(sizes["attributes"])),
            ("weights", f"{sizes['weights']}, {sizes['active']} active"),
            ("transitions", f"{sizes['transitions']} with a weight, {sizes['forbidden']} forbidden"),
        ]
    )
    yield from _section("settings", document["settings"], verbose)
    yield from _section("provenance", document["provenance"], verbose)
    features = [
        (f"{entry['weight']:+.4f}", entry["label"], entry["attribute"]) for entry in document["features"]
    ]
    yield "strongest features" if features else "strongest features: none"
    yield from aligned(features)
    for which in ("strongest", "weakest"):
        rows = [
            (f"{entry['weight']:+.4f}", " -> ".join(entry["labels"]))
            for entry in document[f"{which}_transitions"]
        ]
        yield f"{which} transitions" if rows else f"{which} transitions: none"
        yield from aligned(rows)
    rules = [
        (f"{entry['weight']:.4f}", entry["kind"], ", ".join(entry["labels"]))
        for entry in document["constraints"]
    ]
    yield "constraints on whole sentences" if rules else "constraints on whole sentences: none"
    yield from aligned(rules)


def _section(title: str, values: Mapping[str, Any], verbose: bool) -> Iterator[str]:
    yield title if values else f"{title}: none"
    rows = [(key, _text(value)) for key, value in values.items()]
    yield from aligned([(key, text if verbose else _cut(text)) for key, text in rows])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."
