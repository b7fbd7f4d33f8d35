"""Errors that say what is wrong, what was given and what to do."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Sequence


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn whoever called the library, however many of its own functions lie in between."""
    frame, depth = sys._getframe(), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("factorwise."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


class FactorwiseError(Exception):
    """Base class of all errors that factorwise raises on purpose."""


class InvalidArgumentError(FactorwiseError, ValueError):
    """An argument has a value that is not allowed."""


class NoCompiledFormError(InvalidArgumentError):
    """A part can only run as plain Python, because it has no compiled form."""


class UnknownLabelError(FactorwiseError, ValueError):
    """A domain does not contain this label."""

    def __init__(self, label: object, domain: str, known: Sequence[object]) -> None:
        close = difflib.get_close_matches(str(label), [str(k) for k in known], n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(
            f"{label!r} is not among the {len(known)} labels of domain {domain!r}.{guess} To add it,"
            f" build the domain with domain.extended({label!r}); to encode it as the label for unknown"
            " values, use unknown='other'."
        )


class ShapeError(FactorwiseError, ValueError):
    """An array has the wrong shape."""


class WeightError(FactorwiseError, ValueError):
    """Weights are missing, NaN or infinite, or there is a wrong number of them."""


class EmptyWorldError(FactorwiseError, ValueError):
    """A world has no items."""


class ClusterIdError(FactorwiseError, ValueError):
    """Cluster ids are negative or leave gaps."""


class DiffError(FactorwiseError, ValueError):
    """A diff does not fit the world it is applied to."""


class TemplateError(FactorwiseError, ValueError):
    """A template returned something that templates must not return."""


class ProgramError(FactorwiseError, ValueError):
    """The functions or arrays of a program are not what a walk can use."""


class TemplateCheckError(FactorwiseError, AssertionError):
    """What a template says about a diff differs from what brute force computes."""


class EnergyError(FactorwiseError, ValueError):
    """An energy returned something that energies must not return."""


class ConvexityError(FactorwiseError, ValueError):
    """A method for convex problems was given a problem that is not convex."""


class TreewidthError(FactorwiseError, ValueError):
    """A graph is too densely connected for exact inference within the memory limit."""


class StructureError(FactorwiseError, ValueError):
    """A method cannot work on graphs of this shape."""


class ImpossibleError(FactorwiseError, ValueError):
    """A model gives probability zero to every world."""


class CountsError(FactorwiseError, ValueError):
    """No data could have produced these counts."""


class ModelFileError(FactorwiseError, ValueError):
    """A model file is damaged, truncated, of another kind or written by a newer version."""


class DataFileError(FactorwiseError, ValueError):
    """A data file is not text, or its lines do not have the expected format."""


class StoreError(FactorwiseError, OSError):
    """A store cannot be opened, read or written."""


class MissingDataError(FactorwiseError, LookupError):
    """A data set or data directory does not exist."""


class ClusterError(FactorwiseError, RuntimeError):
    """A cluster failed: too many of its machines were lost, or none was left."""


class LostItemsError(FactorwiseError, RuntimeError):
    """Items were lost or duplicated between shards."""


class MissingExtraError(FactorwiseError, ImportError):
    """A feature needs an optional dependency that is not installed."""


class ConvergenceWarning(UserWarning):
    """An iterative method stopped before it reached its tolerance."""


def require(condition: bool, name: str, value: object, wanted: str) -> None:
    """Raise `InvalidArgumentError` unless ``condition`` holds.

    name
        Name of the argument.
    value
        The value that was given.
    wanted
        What the argument must be, completing the sentence "name must be ...".
    """
    if not condition:
        raise InvalidArgumentError(f"{name} must be {wanted}, but {value!r} was given.")
