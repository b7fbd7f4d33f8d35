"""Compare two records field by field: measures, and thresholds that map them to comparison levels."""

from __future__ import annotations

from factorwise.apps.resolution.comparisons.levels import NOTHING, Cuts
from factorwise.apps.resolution.comparisons.overlaps import HasPairs, OverlapPairs
from factorwise.apps.resolution.comparisons.plan import Comparer, Comparison, planned

__all__ = ["NOTHING", "Comparer", "Comparison", "Cuts", "HasPairs", "OverlapPairs", "planned"]
