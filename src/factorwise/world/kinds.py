"""Check that a part of a walk is used with a kind of world it supports."""

from __future__ import annotations

from typing import Any

from factorwise.errors import InvalidArgumentError


def check_kind(part: Any, world: Any) -> None:
    """Raise an error if a part does not support this kind of world.

    part
        A template, move, preference or kernel. Its attribute ``worlds`` has the kinds that it supports, empty
        if it supports all; ``except_for`` has the kinds among them that it does not.
    world
        The world with which it is used.
    """
    kinds, unsupported = getattr(part, "worlds", ()), getattr(part, "except_for", ())
    if kinds and (not isinstance(world, kinds) or isinstance(world, unsupported)):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidArgumentError(
            f"{type(part).__name__} needs a world of the kind {wanted}, but a {type(world).__name__}"
            " was given: give it such a world, or, in a Joint, wrap it in Within with the name of that"
            " world."
        )
