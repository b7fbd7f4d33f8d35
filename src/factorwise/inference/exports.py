"""Results as pandas tables and labeled xarray arrays; both libraries are imported only when used."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from factorwise.errors import MissingExtraError, ShapeError
from factorwise.types import Floats

Names = Sequence[str] | None
Labels = Sequence[Sequence[str]] | None


def marginals_frame(node: Sequence[Floats], names: Names = None, labels: Labels = None) -> Any:
    """Return label probabilities as a ``pandas.DataFrame`` with a row for each variable and label.

    node
        Probabilities of the labels of each variable.
    names, labels
        Names of the variables and of the labels of each; numbers by default.
    """
    variables, known = _named(node, names, labels)
    pandas = optional("pandas")
    return pandas.DataFrame(
        {
            "variable": [name for name, table in zip(variables, node, strict=True) for _ in table],
            "label": [label for table in known for label in table],
            "probability": np.concatenate(node),
        }
    )


def marginals_array(node: Sequence[Floats], names: Names = None, labels: Labels = None) -> Any:
    """Return label probabilities as an ``xarray.DataArray`` over variables and labels.

    The labels are those of all variables, in order of appearance. A label that a variable does not have is
    NaN for that variable.
    """
    variables, known = _named(node, names, labels)
    column_of = {
        label: number for number, label in enumerate(dict.fromkeys(tag for row in known for tag in row))
    }
    values = np.full((len(variables), len(column_of)), np.nan)
    for row, (table, own) in enumerate(zip(node, known, strict=True)):
        values[row, [column_of[label] for label in own]] = table
    coords = {"variable": list(variables), "label": list(column_of)}
    return optional("xarray").DataArray(values, dims=("variable", "label"), coords=coords, name="probability")


def optional(module: str) -> Any:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as fault:
        raise MissingExtraError(
            f"{module} is not installed, but this needs it: pip install 'factorwise[diagnostics]'."
        ) from fault


def _named(
    node: Sequence[Floats], names: Names, labels: Labels
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Check names and labels, or number variables and labels if none are given."""
    variables = [str(number) for number in range(len(node))] if names is None else names
    known = [[str(label) for label in range(len(table))] for table in node] if labels is None else labels
    if len(variables) != len(node) or [len(own) for own in known] != [len(table) for table in node]:
        raise ShapeError(
            f"{len(variables)} names and {len(known)} lists of labels do not fit {len(node)} variables:"
            " give a name for each variable, and a list of labels for each."
        )
    return variables, known
