"""What is known of a table between runs: records, entities with stable ids, decisions, models, runs.

A store is one DuckDB file. This package knows nothing of how entities are found.
"""

from factorwise.store.entities import Cause
from factorwise.store.store import Store

__all__ = ["Cause", "Store"]
