"""The context of a pair: what the clusters of its two records say, beyond the two records themselves."""

from __future__ import annotations

from factorwise.apps.resolution.context.features import ContextFeature, PairContext
from factorwise.apps.resolution.context.model import ContextModel

__all__ = ["ContextFeature", "ContextModel", "PairContext"]
