"""Storage of records, entities with stable ids, decisions, models and runs in one DuckDB file.

This package does not depend on how entities are resolved.
"""

from factorwise.store.entities import Cause
from factorwise.store.store import Store

__all__ = ["Cause", "Store"]
