"""What a model that was fitted without labels says of itself on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from factorwise.cli.options import Options
from factorwise.cli.output import notice

if TYPE_CHECKING:  # numba and Arrow take their time to load
    from factorwise.apps.resolution.knowledge import Knowledge

about_option = click.option(
    "--about",
    multiple=True,
    metavar="COLUMN",
    help="Without labels: column that names the entity; give first and last name each.  [default: inferred]",
)


def unlabelled_entry(knowledge: Knowledge) -> dict[str, Any] | None:
    """Return what was measured without labels as JSON values; None for a model with labels."""
    model = knowledge.unlabelled
    if model is None:
        return None
    return {
        **model.report,
        "contexts": list(model.contexts),
        "safe_rule": model.is_safe,
        "one_per_source": model.one_per_source,
        "source": model.source,
    }


def unlabelled_rows(entry: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Say what records were taken to be about, and how good the answer is likely to be."""
    if entry is None:
        return
    rule = "; joined only if equal in it and rare" if entry["safe_rule"] else ""
    yield "about", f"{entry['about']} ({entry['why']}){rule}"
    if entry["contexts"]:
        yield "mentions", f"records with one {' or '.join(entry['contexts'])} are of different entities"
    if entry["one_per_source"]:
        source = entry["source"] or "source"
        yield "sources", f"each {source} has an entity once"
    if entry["safe_rule"]:
        yield "estimate", "precision and recall are not known: the evidence is too thin to tell"
    else:
        yield (
            "estimate",
            f"precision {entry['precision']:.2f}, recall {entry['recall']:.2f}; from"
            f" {entry['anchors']:,.0f} pairs that are equal, or all but equal, in a rare {entry['about']},"
            " not from labels",
        )
    if entry["candidates"] is not None:
        yield "candidates", f"an estimated {entry['candidates']:.1%} of the pairs of one entity"


def warn_of_thin_evidence(options: Options, knowledge: Knowledge) -> None:
    """Warn where an answer without labels rests on little."""
    if knowledge.unlabelled is not None:
        for warning in knowledge.unlabelled.report["warnings"]:
            notice(options, warning)
