"""Numbers as options: finite, and within usable limits."""

from __future__ import annotations

import math
from typing import Any

import click

LARGEST = 10**12


class Whole(click.IntRange):
    """A whole number in a range; the upper limit ``most`` is mentioned only if it is exceeded."""

    def __init__(self, *range_ends: Any, most: int = LARGEST, **settings: Any) -> None:
        super().__init__(*range_ends, **settings)
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number."""
        number: int = super().convert(value, param, ctx)
        if number > self.most:
            self.fail(f"{number} is too many: give at most {self.most}.", param, ctx)
        return number


class Real(click.FloatRange):
    """A finite number in a range, which may be open."""

    def _describe_range(self) -> str:
        return super()._describe_range() if self.min is not None or self.max is not None else ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number) or abs(number) > LARGEST:
            self.fail(f"{number:g} is outside the usable range: give at most {LARGEST:g}.", param, ctx)
        return number
