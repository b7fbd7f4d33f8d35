"""Inference that chooses its own method: exact if that fits time and memory, else bounds and a search."""

from __future__ import annotations

from factorwise.inference.oracle.answer import Answer
from factorwise.inference.oracle.choice import infer

__all__ = ["Answer", "infer"]
