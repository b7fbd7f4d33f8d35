"""The context of a pair: evidence from the clusters of its two records, beyond the records themselves."""

from __future__ import annotations

from factorwise.apps.resolution.context.features import ContextFeature, PairContext
from factorwise.apps.resolution.context.model import ContextModel

__all__ = ["ContextFeature", "ContextModel", "PairContext"]
