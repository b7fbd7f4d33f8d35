"""``factorwise flows``: learn how a population moves from counts by time and place, find flows, score."""

from __future__ import annotations

from factorwise.cli.group import Registry, verb_group

VERBS: Registry = {
    "apply": ("factorwise.cli.flows.apply", "Find the flows behind counts."),
    "fit": ("factorwise.cli.flows.fit", "Learn from counts by time and place."),
    "score": ("factorwise.cli.flows.score", "Compare the flows found with the true ones."),
}

command = verb_group(
    "flows",
    "Find how the members of a population move between places, from counts alone.",
    VERBS,
    example="factorwise flows fit counts.csv --features pairs.csv --model birds.fw",
)
