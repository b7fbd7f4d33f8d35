"""Errors that say what is wrong, what was given and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class FactorwiseError(Exception):
    """Anything factorwise refuses to do."""


class InvalidArgumentError(FactorwiseError, ValueError):
    """An argument outside what it may be."""


class NoCompiledFormError(InvalidArgumentError):
    """Something that runs as plain Python only."""


class UnknownLabelError(FactorwiseError, ValueError):
    """A label that its domain does not contain."""

    def __init__(self, label: object, domain: str, known: Sequence[object]) -> None:
        close = difflib.get_close_matches(str(label), [str(k) for k in known], n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(
            f"{label!r} is not among the {len(known)} labels of domain {domain!r}.{guess}"
            f" To admit it, build the domain with domain.extended({label!r});"
            f" to fold it away, encode with unknown='other'."
        )


class ShapeError(FactorwiseError, ValueError):
    """An array whose shape does not fit its role."""


class WeightError(FactorwiseError, ValueError):
    """Weights that are missing, of the wrong number, NaN or infinite."""


class EmptyWorldError(FactorwiseError, ValueError):
    """A world with nothing in it."""


class ClusterIdError(FactorwiseError, ValueError):
    """Cluster ids that are negative or leave gaps."""


class DiffError(FactorwiseError, ValueError):
    """A diff that does not fit the world it is applied to."""


class TemplateError(FactorwiseError, ValueError):
    """A template that returned what a template must not return."""


class ProgramError(FactorwiseError, ValueError):
    """A program of a part whose functions or arrays are not what a walk can use."""


class TemplateCheckError(FactorwiseError, AssertionError):
    """A template whose account of a diff is not what brute force finds."""


class EnergyError(FactorwiseError, ValueError):
    """An energy that returned what an energy must not return."""


class ConvexityError(FactorwiseError, ValueError):
    """Something that is not convex, given to a method that works for convex things only."""


class TreewidthError(FactorwiseError, ValueError):
    """A graph too densely connected for exact inference in the memory allowed."""


class StructureError(FactorwiseError, ValueError):
    """A graph of another shape than the method can work on."""


class ImpossibleError(FactorwiseError, ValueError):
    """A model that gives probability zero to every world."""


class CountsError(FactorwiseError, ValueError):
    """Counts that no data could have given."""


class ModelFileError(FactorwiseError, ValueError):
    """A model file that is damaged, cut short, of another kind or too new."""


class DataFileError(FactorwiseError, ValueError):
    """A data file whose lines are not what its format asks for, or are not text."""


class StoreError(FactorwiseError, OSError):
    """A store that cannot be opened, read or written."""


class MissingDataError(FactorwiseError, LookupError):
    """A data set or data directory that is not there."""


class ClusterError(FactorwiseError, RuntimeError):
    """A cluster gave up: too many of its machines were lost, or none was left."""


class LostItemsError(FactorwiseError, RuntimeError):
    """Items were lost or doubled between shards."""


class MissingExtraError(FactorwiseError, ImportError):
    """A feature whose optional dependency is not installed."""


class ConvergenceWarning(UserWarning):
    """An iterative method stopped before it met its tolerance."""


def require(condition: bool, name: str, given: object, wanted: str) -> None:
    """Raise `InvalidArgumentError` for argument ``name`` unless ``condition`` holds."""
    if not condition:
        raise InvalidArgumentError(f"{name} must be {wanted}, but {given!r} was given.")
