"""``factorwise resolve blocks``: how many pairs blocking rules would make, before anything is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from factorwise.cli.files import RESOLUTION, check_kind, speaking_of
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import aligned, emit, size_text
from factorwise.cli.progress import Clock, cost_rows
from factorwise.cli.resolve.data import Records, given_fields, read_records, record_options, rule_option

if TYPE_CHECKING:  # Arrow takes its time to load
    from factorwise.apps.resolution.schema.fields import FieldSpec

MOST_COUNTED = 1_000_000  # records that are all counted; of larger tables a sample is
SAMPLE = 500_000


@verb(example='factorwise resolve blocks people.csv --id id --rule "last name of name + postcode"')
@click.argument("files", nargs=-1, required=True, metavar="RECORDS...")
@record_options
@rule_option
@path_option("--model", metavar="MODEL.fw", help="Count for the rules of a model.")
@path_option("--fields", metavar="FIELDS.toml", help="Kinds of columns, without a model.")
def command(
    options: Options,
    files: tuple[str, ...],
    rule: tuple[str, ...],
    model: Path | None,
    fields: Path | None,
    **reading: Any,
) -> None:
    """Count the blocks and pairs that blocking rules would make of RECORDS; nothing is compared.

    The rules are those of --rule, of the model, or those that would be chosen without either. Pairs of a
    rule are those of its blocks joined whole; of blocks above the size told last, `resolve apply` pairs each
    record with its neighbors in some orders only. The number of all different pairs is an estimate, and so
    are the counts of tables of more than a million records, which are taken from half a million of them.
    """
    if model is not None and fields is not None:
        raise click.UsageError("--fields is for counting without a model; --model has fields of its own.")
    report_counts(options, files, reading, fields, model, rule)


def report_counts(
    options: Options,
    files: Sequence[str],
    reading: Mapping[str, Any],
    fields: Path | None,
    model: Path | None,
    rules: tuple[str, ...],
) -> None:
    """Read records, and print what rules would make of them."""
    if model is not None:
        check_kind(model, RESOLUTION)
    clock = Clock()
    with clock.part("reading"):
        records = read_records(files, **reading)
        declared = given_fields(fields, records)
    with clock.part("counting"), speaking_of(records.name):
        document = count(records, declared, model, rules)
    document |= clock.cost()
    emit(document, _lines(document), as_json=options.json)


def count(
    records: Records, declared: list[FieldSpec] | None, model: Path | None, texts: tuple[str, ...]
) -> dict[str, Any]:
    """Return counts of blocks and pairs as JSON values.

    declared
        Kinds of columns that were given; None for none.
    texts
        Rules as they were written; those of the model, or chosen ones, if there are none.
    """
    from factorwise.apps.resolution.blocking import default_rules
    from factorwise.apps.resolution.blocking.counting import count_blocks
    from factorwise.apps.resolution.blocking.rule_text import parse_rule
    from factorwise.apps.resolution.knowledge import Knowledge
    from factorwise.apps.resolution.memory import expected_seconds, plan_memory
    from factorwise.apps.resolution.normalize.normal_forms import normalize
    from factorwise.apps.resolution.schema.fields import override
    from factorwise.apps.resolution.schema.kinds import infer_kinds

    knowledge = None if model is None else Knowledge.load(model)
    table, share = records.table, 1.0
    if table.num_rows > MOST_COUNTED:
        share = SAMPLE / table.num_rows
        rows = np.random.default_rng(0).choice(table.num_rows, SAMPLE, replace=False)
        table = table.take(np.sort(rows))
    if knowledge is not None:
        fields = list(knowledge.fields)
    else:
        fields = override(infer_kinds(table, leave_out=records.leave_out), declared or [])
    rules = [parse_rule(text, fields) for text in texts]
    normal = normalize(table, fields)
    if not rules:
        rules = default_rules(fields, normal) if knowledge is None else list(knowledge.rules)
    n_records = records.table.num_rows
    budget = None if knowledge is None else knowledge.budget(n_records)
    found = count_blocks(normal, rules, budget, share=share)
    tested = None if knowledge is None or knowledge.pair_filter is None else knowledge.pair_filter.report
    kept = 1.0 if tested is None else tested.kept / max(tested.pairs, 1)
    compared = [field.name for field in fields if field.kind != "ignore"]
    in_context = knowledge is not None and knowledge.context is not None
    plan = plan_memory(None, records.table.select(compared).nbytes, found.pairs, context=in_context)
    seconds = expected_seconds(n_records, round(kept * found.pairs), context=in_context)
    return {
        "records": n_records,
        "sampled": normal.n_rows if share < 1.0 else None,
        "rules": [{**one._asdict(), "rule": one.rule.name} for one in found.rules],
        "joined_whole_up_to": found.limits.largest,
        "pairs": found.pairs,
        "expected": {"cpu_seconds": seconds, "memory": plan.needed},
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    """Write counts for people."""
    records = document["records"]
    sampled = document["sampled"]
    yield f"{records:,} records" + ("" if sampled is None else f", estimated from {sampled:,} of them")
    counts = [
        (f"{one['blocks']:,}", f"{one['largest']:,}", f"{one['pairs']:,}", one["rule"])
        for one in document["rules"]
    ]
    yield from aligned([("blocks", "largest", "pairs", "rule"), *counts])
    yield from aligned(
        [
            (
                "all",
                f"about {document['pairs']:,} different pairs, {2 * document['pairs'] / max(records, 1):.1f}"
                " for each record",
            ),
            ("joined", f"blocks of up to {document['joined_whole_up_to']:,} records whole"),
            (
                "to resolve",
                f"about {document['expected']['cpu_seconds']:,.0f} CPU s and"
                f" {size_text(document['expected']['memory'])} of memory, or less of it with --memory",
            ),
            *cost_rows(document),
        ]
    )
