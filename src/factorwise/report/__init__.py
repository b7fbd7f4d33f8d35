"""Reports: one HTML file that shows a run and its results, without a network or a server."""

from factorwise.report.page import Report, write_report
from factorwise.report.sections import (
    Chart,
    Entities,
    Entity,
    Facts,
    Matrix,
    PairCase,
    Pairs,
    Section,
    Sentence,
    Sentences,
    Series,
    Table,
)

__all__ = [
    "Chart",
    "Entities",
    "Entity",
    "Facts",
    "Matrix",
    "PairCase",
    "Pairs",
    "Report",
    "Section",
    "Sentence",
    "Sentences",
    "Series",
    "Table",
    "write_report",
]
