"""Breadth-first order and greedy forests, with cycles found by counting."""

from __future__ import annotations

from collections.abc import Sequence

Scopes = Sequence[Sequence[int]]


def is_forest(variables: int, scopes: Scopes) -> bool:
    """Whether variables and factors form no cycle: as many parts are joined as there are edges."""
    parts = [{variable} for variable in range(variables)]
    for scope in scopes:
        touched = [part for part in parts if part & set(scope)]
        if len(touched) < len(scope):
            return False
        parts = [part for part in parts if not part & set(scope)] + [set().union(*touched)]
    return True


def breadth_first(variables: int, scopes: Scopes) -> list[int]:
    """Factors as a walk from the lowest variable of each part meets them, nearest first."""
    order: list[int] = []
    seen: list[int] = []
    for root in range(variables):
        waiting = [] if root in seen else [root]
        seen.extend(waiting)
        while waiting:
            variable = waiting.pop(0)
            for factor, scope in enumerate(scopes):
                if variable in scope and factor not in order:
                    order.append(factor)
                    new = [other for other in scope if other not in seen]
                    seen.extend(new)
                    waiting.extend(new)
    return order


def grow_forest(variables: int, scopes: Scopes, order: Sequence[int]) -> list[bool]:
    """Whether each factor is chosen when every factor that closes no cycle is, in ``order``."""
    chosen: list[int] = []
    for factor in order:
        if is_forest(variables, [scopes[other] for other in [*chosen, factor]]):
            chosen.append(factor)
    return [factor in chosen for factor in range(len(scopes))]
