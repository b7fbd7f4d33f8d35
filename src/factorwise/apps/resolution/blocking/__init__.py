"""Blocking: generate the candidate pairs of records that are worth comparing."""

from factorwise.apps.resolution.blocking.candidates import (
    Candidates,
    RuleBlocks,
    default_budget,
    find_candidates,
    thrifty_budget,
)
from factorwise.apps.resolution.blocking.choosing import default_rules, learned_rules
from factorwise.apps.resolution.blocking.report import (
    Recall,
    recall_of,
    report_dict,
    report_notes,
    report_rows,
)
from factorwise.apps.resolution.blocking.rules import Part, Rule

__all__ = [
    "Candidates",
    "Part",
    "Recall",
    "Rule",
    "RuleBlocks",
    "default_budget",
    "default_rules",
    "find_candidates",
    "learned_rules",
    "recall_of",
    "report_dict",
    "report_notes",
    "report_rows",
    "thrifty_budget",
]
