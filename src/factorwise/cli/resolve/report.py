"""The reports of ``resolve fit`` and ``resolve apply``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.cli.report_sections import (
    LONGEST,
    MOST_MEMBERS,
    Page,
    facts_of,
    probability_bars,
    reliability_chart,
    run_facts,
    shortened,
    template_table,
    weights_table,
    write_page,
)
from factorwise.report import Chart, Entities, Entity, Facts, PairCase, Pairs, Section, Series, Table

if TYPE_CHECKING:  # numba takes its time to load
    from factorwise.apps.resolution.knowledge import Knowledge
    from factorwise.apps.resolution.results.answers import Resolution
    from factorwise.inference.mcmc.shards.search import SearchProgress

MOST_RECORDS = 30_000  # that are shown in entities
MOST_PAIRS = 500
MOST_TEXT = 6_000_000  # characters of the records of entities, and again of those of pairs
LONGEST_RECORD = 4_000  # characters, unless there are very many columns
LEAST = 20  # characters of a value that are shown, however many columns there are
#: Says for the rows of pairs what adds to the score of each: names and amounts.
StepsOf: TypeAlias = "Callable[[NDArray[np.int64], NDArray[np.int64]], list[list[tuple[str, float]]]]"
QUALITY = {"precision": "precision", "recall": "recall", "b_cubed": "F1"}


def write_fit_report(page: Page, document: Mapping[str, Any], knowledge: Knowledge) -> dict[str, Any]:
    """Write what was learned: data, quality, weights."""
    training = document["training"]
    sections: list[Section] = [
        Facts(
            title="Data",
            rows=[
                *document["data"].items(),
                ("learned by", training.get("method", "what records look like")),
            ],
        ),
    ]
    if "b_cubed" in training:
        sections.append(_quality(training))
    if isinstance(training.get("methods"), Mapping):
        rows = [[name, value] for name, value in training["methods"].items()]
        sections.append(
            Table(
                title="Training methods",
                note="B-cubed F1 on held-out entities, from the method that needs the fewest labels to the"
                f" one that needs most. Taken: {training['method']}. The next one is taken only where it is"
                " better by more than chance would explain.",
                columns=["method", "B-cubed F1"],
                rows=rows,
            )
        )
    if training.get("reliability"):
        sections.append(calibration_of(training))
    fields = [[one["name"], one["kind"], one["note"]] for one in document["fields"]]
    sections += [
        Table(title="Fields", columns=["column", "kind", "note"], rows=fields),
        comparisons_of(knowledge),
        weights_of(knowledge),
    ]
    sections.append(run_facts(page, document, {"model": document["model"]["file"]}))
    return write_page(
        page, f"What was learned: {document['model']['file']}", "factorwise resolve fit", sections
    )


def _quality(training: Mapping[str, Any]) -> Facts:
    count = training["held_out"]
    note = (
        f"B-cubed of {count:,} records of entities that were kept apart while it learned."
        if count
        else "B-cubed of the records that it learned from: there are too few entities to keep some apart."
    )
    rows = [(text, training[name]) for name, text in QUALITY.items() if name in training]
    return Facts(title="Quality", note=note, rows=rows)


def calibration_of(training: Mapping[str, Any]) -> Chart:
    """Show how far the probabilities can be trusted, judged by entities that were kept apart."""
    return reliability_chart(
        training["reliability"],
        "pairs",
        f"Probabilities are {describe_calibration(training)}. How often compared pairs are of one entity, by"
        " their probability, judged by entities that were kept apart while the model learned; a pair with"
        " both records among them counts twice.",
    )


def write_apply_report(
    page: Page,
    document: Mapping[str, Any],
    table: pa.Table,
    found: Resolution,
    knowledge: Knowledge,
    rounds: Sequence[SearchProgress],
    *,
    values: bool,
) -> dict[str, Any]:
    """Write what was found: the walk, entities, uncertain pairs, weights."""
    search = document["search"]
    facts = [
        ("score", search["score"]),
        ("rounds", search["rounds"]),
        ("ended", search["stopped"]),
        ("uncertain pairs, 1 to 99 %", document["uncertain_pairs"]),
        ("probabilities", document["calibration"]),
    ]
    about: list[Section] = []
    if document["placed"] is not None:
        about.append(facts_of("New records", document["placed"]))
    sections = result_sections(facts, about, table, found, rounds, values=values)
    if found.posterior is not None:
        sections.append(pairs_of(table, found, knowledge, values=values))
    else:
        sections.append(Facts(title="Uncertain pairs", rows=[("not drawn", "give --posterior to have them")]))
    if knowledge.training.get("reliability"):
        sections.append(calibration_of(knowledge.training))
    sections.append(weights_of(knowledge))
    sections.append(run_facts(page, document, {"model": document["model"] or "none: without labels"}))
    return write_page(page, f"Entities of {document['output']}", "factorwise resolve apply", sections)


def result_sections(
    facts: Sequence[tuple[str, Any]],
    about: Sequence[Section],
    table: pa.Table,
    found: Resolution,
    rounds: Sequence[SearchProgress],
    *,
    values: bool,
) -> list[Section]:
    """Return what a page says of the entities found: how many, how the walk went, how sure they are.

    facts
        What else the first section says.
    about
        Sections that come after it.
    """
    sizes = np.unique(found.labels, return_counts=True)[1]
    counts = [
        ("records", len(found.ids)),
        ("entities", found.n_entities),
        ("largest entity", int(sizes.max(initial=0))),
    ]
    return [
        Facts(title="Result", rows=[*counts, *facts]),
        *about,
        *([convergence(rounds)] if rounds else []),
        sizes_of(found),
        probability_bars(
            "Confidence",
            found.confidence[~np.isnan(found.confidence)],
            "confidence, from",
            "records",
            "The probability of each record's entity, given those of all others.",
        ),
        entities_of(table, found, values=values),
    ]


def convergence(rounds: Sequence[SearchProgress]) -> Chart:
    """Show how the score rose."""
    number = [one.round for one in rounds]
    return Chart(
        title="Convergence",
        series=[Series("score", number, [one.score for one in rounds])],
        x_label=rounds[-1].unit if rounds else "round",
        y_label="score of the clustering",
    )


def sizes_of(found: Resolution) -> Chart:
    """Show how many entities there are of each size."""
    size, count = np.unique(np.unique(found.labels, return_counts=True)[1], return_counts=True)
    return Chart(
        title="Sizes of entities",
        style="bar",
        series=[Series("entities", [str(one) for one in size.tolist()], count.tolist())],
        x_label="records of an entity",
        y_label="entities",
        log_y=True,
    )


def weights_of(knowledge: Knowledge) -> Table:
    """Show all weights, the largest first."""
    return weights_table(
        knowledge.weights_by_name(), "What each finding adds to the score of a pair in one entity.", "finding"
    )


def comparisons_of(knowledge: Knowledge) -> Table:
    """Show how much each comparison can matter."""
    return template_table(
        knowledge.weights_by_comparison(),
        "The least and the most that a comparison can add to a score.",
        "comparison",
    )


def entities_of(table: pa.Table, found: Resolution, *, values: bool) -> Entities:
    """Show the most doubtful entities of two records or more, as many as there is room for."""
    label, confidence = found.labels, np.nan_to_num(found.confidence, nan=1.0)
    names, first, member, size = np.unique(label, return_index=True, return_inverse=True, return_counts=True)
    least = np.ones(len(names))
    np.minimum.at(least, member, confidence)
    several = np.flatnonzero(size > 1)
    order = several[np.argsort(least[several], kind="stable")]
    some = np.minimum(size, MOST_MEMBERS)
    shown = order[np.cumsum(some[order]) <= MOST_RECORDS]
    place = np.full(len(names), -1)
    place[shown] = np.arange(len(shown))
    rows = np.flatnonzero(place[member] >= 0)
    rows = rows[np.lexsort((confidence[rows], place[member[rows]]))]  # the doubtful ones of each first
    begin = np.cumsum(size[shown]) - size[shown]
    rows = rows[np.arange(len(rows)) - np.repeat(begin, size[shown]) < MOST_MEMBERS]
    columns, records = _records(table, found, rows, values=values)
    sure = np.round(found.confidence[rows], 4).tolist()
    members = iter([[one[0], share, *one[1:]] for one, share in zip(records, sure, strict=True)])
    entities, room = [], MOST_TEXT
    entity_names = found.entity.take(pa.array(first[shown])).to_pylist()
    for number, name in zip(shown.tolist(), entity_names, strict=True):
        part = list(islice(members, int(some[number])))
        room -= _length(part)
        if room < 0:
            break
        coherence, left_out = round(float(least[number]), 4), int(size[number]) - len(part)
        entities.append(Entity(str(name), coherence, part, left_out))
    left = len(several) - len(entities)
    note = f"{len(entities):,} entities of two records or more"
    note += f"; {left:,} others, which are less in doubt, are not shown." if left else ", all of them."
    note += " Coherence is the least confidence in one of its records."
    if values:
        note += " Words that at most half of them have are marked."
    columns = [columns[0], "confidence", *columns[1:]]
    return Entities(title="Entities", note=note, columns=columns, entities=entities)


def pairs_of(table: pa.Table, found: Resolution, knowledge: Knowledge, *, values: bool) -> Pairs:
    """Show the most uncertain pairs of records with what each comparison adds."""
    from factorwise.apps.resolution.linking import Linked
    from factorwise.apps.resolution.results.explaining import contributions

    linked = found.linked
    assert isinstance(linked, Linked)

    def steps_of(one: NDArray[np.int64], two: NDArray[np.int64]) -> list[list[tuple[str, float]]]:
        return contributions(linked.normal, knowledge, one, two, linked.candidates, linked.first_pass)

    return pairs_with_steps(table, found, steps_of, knowledge.temperature, values=values)


def pairs_with_steps(
    table: pa.Table, found: Resolution, steps_of: StepsOf, temperature: float, *, values: bool
) -> Pairs:
    """Show the most uncertain pairs of records with what adds to their scores.

    steps_of
        Returns for pairs of rows of those that were weighed what adds to their scores, by name.
    """
    from factorwise.apps.resolution.results.explaining import probability_alone

    posterior, graph = found.posterior, found.linked.walk.graph
    assert posterior is not None
    uncertain = posterior.uncertain_pairs()
    chosen = uncertain[:MOST_PAIRS]
    row_of_unit = np.zeros(graph.n_items, np.int64)
    unit = found.linked.unit
    row_of_unit[unit[::-1]] = np.arange(len(unit))[::-1]  # the first record of each item
    one, two = row_of_unit[graph.first[chosen]], row_of_unit[graph.second[chosen]]
    steps = steps_of(one, two)
    if found.weighed is not None:  # so far rows of those that were weighed
        one, two = found.weighed[one], found.weighed[two]
    columns, records = _records(table, found, np.concatenate([one, two]), values=values)
    room = np.cumsum([_length([records[k], records[len(one) + k]]) for k in range(len(one))]) <= MOST_TEXT
    pairs = [
        PairCase(
            records[k],
            records[len(one) + k],
            round(float(posterior.together[chosen[k]]), 4),
            bool(found.labels[one[k]] == found.labels[two[k]]),
            steps[k],
            round(probability_alone(steps[k], temperature), 4),
        )
        for k in np.flatnonzero(room).tolist()
    ]
    return Pairs(
        title="Uncertain pairs",
        note=f"{len(pairs):,} of {len(uncertain):,} of a probability of 1 to 99 %, the most uncertain."
        " How probable it is that both are one, and what each finding adds to the score, one after the other."
        " Other records speak for or against it, too: so a probable pair may be apart in the clustering"
        " that is best as a whole.",
        columns=columns,
        pairs=pairs,
    )


def _records(
    table: pa.Table, found: Resolution, rows: NDArray[np.int64], *, values: bool
) -> tuple[list[str], list[list[Any]]]:
    """Return the names of what is shown of records, and that of some of them: the id, then the values."""
    ids = [str(value) for value in found.ids.take(pa.array(rows)).to_pylist()]
    if not values:
        return ["id"], [[one] for one in ids]
    some = table.take(pa.array(rows))
    longest = max(LEAST, min(LONGEST, LONGEST_RECORD // max(1, some.num_columns)))
    columns = [
        [None if value is None else shortened(str(value), longest) for value in some[name].to_pylist()]
        for name in some.column_names
    ]
    return ["id", *some.column_names], [list(row) for row in zip(ids, *columns, strict=True)]


def _length(records: Sequence[Sequence[Any]]) -> int:
    """Return how many characters records take."""
    return sum(len(value) for record in records for value in record if isinstance(value, str))
