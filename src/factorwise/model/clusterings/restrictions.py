"""Functions with which templates restrict themselves to some items of a clustering."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

from factorwise.errors import TemplateError

Kind = TypeVar("Kind")


def copy_with(template: Kind, **changed: Any) -> Kind:
    """Return a copy with changed attributes.

    A function that is a method of the template is bound to the copy.
    """
    twin = copy(template)
    for name, value in changed.items():
        setattr(twin, name, value)
    function = getattr(template, "function", None)
    if getattr(function, "__self__", None) is template:
        twin.function = getattr(twin, function.__name__)  # type: ignore[attr-defined,union-attr]
    return twin


def refuse_repulsion(template: Any) -> None:
    """Refuse factors between clusters, because the two clusters may lie in different shards."""
    if template.repels:
        raise TemplateError(
            f"template {template.name!r} scores pairs of items in different clusters, but a walk in"
            " shards sees the clusters of only one shard: use repels=False and weights with the"
            " opposite sign, which changes all scores by the same constant."
        )
