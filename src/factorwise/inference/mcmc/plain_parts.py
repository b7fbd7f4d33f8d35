"""Call parts without programs by their Python methods, for interpreted walks."""

from __future__ import annotations

from typing import Any

from factorwise.kernels.compile.programs import Program
from factorwise.model.model import Model


def plain_templates(model: Model, world: Any) -> list[Program]:
    """Return one program for all templates of a model, which calls ``model.gain`` on diffs."""

    def gains(move: Any, choice: Any) -> None:
        for k in range(move.choices):
            target = int(choice.targets[k])
            if target != move.source:
                choice.out[k] += model.gain(world, world.diff_to(move.item, move.source, target))

    return [Program(gains=gains, name="the model")]
