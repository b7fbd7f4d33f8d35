"""Which kinds of worlds a part of a walk is for."""

from __future__ import annotations

from typing import Any

from factorwise.errors import InvalidArgumentError


def check_kind(part: Any, world: Any) -> None:
    """Refuse a world that a part is not for.

    part
        A template, move, preference or kernel: its ``worlds`` are the kinds of worlds that it is for, none
        for any, ``except_for`` those among them that it is not for.
    """
    kinds, others = getattr(part, "worlds", ()), getattr(part, "except_for", ())
    if kinds and (not isinstance(world, kinds) or isinstance(world, others)):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidArgumentError(
            f"{type(part).__name__} is for worlds of the kind {wanted}, but a {type(world).__name__} was"
            " given: give it such a world, and in a Joint put it Within the one that is."
        )
