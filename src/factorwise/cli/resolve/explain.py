"""``factorwise resolve explain``: what keeps two records together or apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.cli.files import RESOLUTION, check_kind, reading_utf8, speaking_of
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import aligned, emit, notice
from factorwise.cli.resolve.data import (
    Records,
    given_fields,
    given_table,
    read_records,
    record_options,
    row_of,
    score_options,
)
from factorwise.cli.resolve.progress import telling
from factorwise.errors import DataFileError

if TYPE_CHECKING:  # numba and Arrow take their time to load
    from factorwise.apps.resolution.knowledge import Knowledge
    from factorwise.apps.resolution.results.explaining import Explainer, Placing

LINKS = 10  # links of an entity that are shown to people; JSON has all
_WIDEST = 40  # characters of a value that are shown to people


@verb(example="factorwise resolve explain people.csv --id id --model people.fw 1207 3391")
@click.argument("files", nargs=-1, metavar="RECORDS...")
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@record_options
@score_options
@path_option("--model", metavar="MODEL.fw", help="What was learned.  [default: without labels]")
@path_option("--fields", metavar="FIELDS.toml", help="Kinds of columns, without a model.")
@click.option(
    "--entities",
    metavar="OUT",
    help="What `resolve apply` wrote: show what A gains in B's whole entity, and where it is.",
)
def command(
    options: Options,
    files: tuple[str, ...],
    one: str,
    other: str,
    model: Path | None,
    fields: Path | None,
    entities: str | None,
    **reading: Any,
) -> None:
    """Show what each factor contributes to keeping the records with the ids A and B together or apart.

    For every comparison: what it measured, the level that is, and the weight of the level; then the weights
    of a link and of a cluster, and what the score gains if the two are put together. Divided by the
    temperature found on held-out entities, the gain is the log of the odds that they are of one entity, as
    far as nothing but the two is looked at. Records that no blocking rule brings together are no candidates:
    their comparisons are shown but not weighed.
    """
    if not files:  # the last two words are taken for ids
        raise click.UsageError(
            f"give RECORDS and the ids of two of them, A and B, but only {one!r} and {other!r} were given."
        )
    if model is not None and fields is not None:
        raise click.UsageError("--fields is for explaining without a model; --model has fields of its own.")
    if model is not None:
        check_kind(model, RESOLUTION)
    records = read_records(files, **reading)
    rows = (row_of(one, records), row_of(other, records))
    if rows[0] == rows[1]:
        raise click.UsageError(f"A and B are both {one!r}: give the ids of two records.")
    entity = None if entities is None else _entity_of(records, entities)
    knowledge = _knowledge(options, records, model, fields)

    from factorwise.apps.resolution.results.explaining import Explainer
    from factorwise.kernels.compile.threads import Team

    telling(options)(f"finding candidates by {len(knowledge.rules)} rules")
    with speaking_of(records.name), Team(options.threads) as team:
        explainer = Explainer(records.table, knowledge, team=team)
        document = _pair_entry(records, rows, explainer)
        if entity is not None:
            document["entities"] = _places(records, rows, explainer, *entity)
    emit(document, _lines(document), as_json=options.json)


def _knowledge(options: Options, records: Records, model: Path | None, fields: Path | None) -> Knowledge:
    from factorwise.apps.resolution.knowledge import Knowledge
    from factorwise.apps.resolution.schema.agreement import check_columns

    if model is not None:
        knowledge = Knowledge.load(model)
        with speaking_of(records.name):
            check_columns(records.table, knowledge.fields, records.leave_out)
        return knowledge
    from factorwise.apps.resolution.estimator import EntityResolver

    notice(options, "no model was given: weights are found from the records themselves, without labels.")
    resolver = EntityResolver(
        fields=given_fields(fields, records), random_state=options.seed, n_jobs=options.threads
    )
    with speaking_of(records.name):
        resolver.fit(records.table, leave_out=records.leave_out, tell=telling(options))
    return resolver.knowledge_


def _entity_of(records: Records, path: str) -> tuple[np.ndarray[Any, Any], list[Any]]:
    """Read for each record the number of its entity, and the names of the entities."""
    with reading_utf8(path):
        table = given_table(path, ["id", "entity"])
    from factorwise.io.tables.ids import rows_of

    rows = rows_of(records.ids, table.column("id").combine_chunks())
    if (rows < 0).any():
        first = records.ids[int(np.flatnonzero(rows < 0)[0])].as_py()
        raise DataFileError(
            f"{path}: lacks {int((rows < 0).sum())} of the records, the first of them {first!r}; its ids are"
            f" such as {table.column('id')[0].as_py()!r}. Give what `resolve apply` wrote for {records.name}."
        )
    coded = table.column("entity").combine_chunks().dictionary_encode()
    numbers = np.asarray(coded.indices.fill_null(-1), dtype=np.int64)[rows]
    return numbers, coded.dictionary.to_pylist()


def _places(
    records: Records,
    rows: tuple[int, int],
    explainer: Explainer,
    numbers: np.ndarray[Any, Any],
    names: list[Any],
) -> dict[str, Any]:
    """Return what A gains in the entity of B, and in its own if that is another, as JSON values."""
    mine, theirs = (int(numbers[row]) for row in rows)

    def place(number: int) -> dict[str, Any]:
        members = np.flatnonzero(numbers == number)
        return {"entity": names[number], **_placing_entry(records, explainer.placing(rows[0], members))}

    return {
        "together": mine == theirs,
        "there": place(theirs),
        "here": None if mine == theirs else place(mine),
    }


def _placing_entry(records: Records, placing: Placing) -> dict[str, Any]:
    return {
        "linked": [{"id": records.ids[row].as_py(), "score": score} for row, score in placing.linked],
        "unlinked": placing.others,
        "apart": placing.unlinked,
        "cluster": placing.cluster,
        "gain": placing.gain,
        "log_odds": placing.log_odds,
        "probability": placing.probability,
    }


def _pair_entry(records: Records, rows: tuple[int, int], explainer: Explainer) -> dict[str, Any]:
    pair = explainer.pair(*rows)
    columns = set(records.table.column_names)  # the whole record is compared, too, but is none of them
    fields = dict.fromkeys(one.field for one in pair.weighed if one.field in columns)
    return {
        "ids": [records.ids[row].as_py() for row in rows],
        "candidates": pair.candidates,
        "rules": list(pair.rules),
        "values": {
            name: [_plain(records.table.column(name)[row].as_py()) for row in rows] for name in fields
        },
        "comparisons": [one._asdict() for one in pair.weighed],
        "context": [{"name": name, "weight": weight} for name, weight in pair.context],
        "link": pair.link,
        "apart": pair.unlinked,
        "cluster": pair.cluster,
        "linked_score": pair.linked_score,
        "score": pair.score,
        "gain": pair.gain,
        "temperature": pair.temperature,
        "log_odds": pair.log_odds,
        "probability": pair.probability,
        "calibration": describe_calibration(explainer.knowledge.training),
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | list) else str(value)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    one, other = document["ids"]
    yield f"{one} and {other}"
    yield from aligned([(name, _cut(a), _cut(b)) for name, (a, b) in document["values"].items()])
    yield from _candidate_lines(document)
    weighed = [one for one in document["comparisons"] if one["level"]]
    missing = [one for one in document["comparisons"] if not one["level"]]
    yield "comparisons" if document["candidates"] else "comparisons, which are not weighed"
    rows = [
        (f"{one['weight']:+.3f}", f"{one['field']}: {one['measure']} of {one['form']}", _value(one))
        for one in sorted(weighed, key=lambda one: -abs(one["weight"]))
    ]
    yield from aligned(rows)
    if missing:
        names = ", ".join(f"{one['measure']} of {one['form']} of {one['field']}" for one in missing)
        yield f"  nothing to compare: {names}"
    yield "together"
    yield from aligned(_sums(document))
    if document.get("entities"):
        yield from _entity_lines(document)


def _candidate_lines(document: Mapping[str, Any]) -> Iterator[str]:
    if document["candidates"]:
        yield "candidates: they share"
    elif document["rules"]:
        yield "no candidates, as these are blocks too large to be joined whole: they share"
    else:
        yield "no candidates: no blocking rule brings them together"
    yield from aligned([(name,) for name in document["rules"]])


def _value(one: Mapping[str, Any]) -> str:
    if one["value"] is None:  # a model without labels has levels alone
        return f"level {one['level']}: {one['meaning']}"
    return f"{one['value']:.4g}  (level {one['level']}: {one['meaning']})"


def _sums(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    if document["candidates"]:
        compared = document["linked_score"] - document["link"]
        parts = [(f"{compared:+.3f}", "the comparisons"), (f"{document['link']:+.3f}", "a link")]
        parts += [(f"{one['weight']:+.3f}", one["name"]) for one in document["context"]]
    else:
        parts = [(f"{document['apart']:+.3f}", "two members that are not linked")]
    return [
        *parts,
        (f"{-document['cluster']:+.3f}", "one cluster less"),
        (f"{document['gain']:+.3f}", "in all"),
        (
            f"{document['log_odds']:+.3f}",
            f"log-odds at temperature {document['temperature']:.4g}: probability"
            f" {document['probability']:.4f}",
        ),
        ("", f"probabilities are {document['calibration']}"),
    ]


def _entity_lines(document: Mapping[str, Any]) -> Iterator[str]:
    one, other = document["ids"]
    places = document["entities"]
    whose = "their" if places["together"] else f"the entity of {other},"
    yield from _place_lines(
        f"{one} in {whose} entity" if places["together"] else f"{one} in {whose}", places["there"]
    )
    if places["here"] is not None:
        yield from _place_lines(f"{one} where it is,", places["here"])


def _place_lines(title: str, place: Mapping[str, Any]) -> Iterator[str]:
    linked = place["linked"]
    yield f"{title} {place['entity']}"
    rows = [(f"{one['score']:+.3f}", f"link with {one['id']}") for one in linked[:LINKS]]
    if len(linked) > LINKS:
        rest = sum(one["score"] for one in linked[LINKS:])
        rows.append((f"{rest:+.3f}", f"{len(linked) - LINKS} more links"))
    if place["unlinked"]:
        unlinked = place["unlinked"] * place["apart"]
        rows.append((f"{unlinked:+.3f}", f"{place['unlinked']} members that it is not linked with"))
    if not rows:
        yield "  nobody else is there"
        return
    rows += [
        (f"{-place['cluster']:+.3f}", "one cluster less"),
        (f"{place['gain']:+.3f}", f"in all, against being by itself: probability {place['probability']:.4f}"),
    ]
    yield from aligned(rows)


def _cut(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
