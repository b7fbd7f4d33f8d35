"""Convert Python values to Arrow columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa


def column_of(values: list[Any]) -> pa.Array:
    """Return an Arrow array of Python values; values of several types, such as str and bytes, become text."""
    kinds = {type(value) for value in values}
    if {bytes, str} <= kinds:
        values = [
            value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
            for value in values
        ]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        if all(value is None or isinstance(value, list) for value in values):
            texts = [None if value is None else [_as_text(item) for item in value] for value in values]
            return pa.array(texts, pa.list_(pa.string()))
        return pa.array([_as_text(value) for value in values], pa.string())


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
