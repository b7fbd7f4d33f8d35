"""Turn the templates of a model into programs of a walk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from factorwise.errors import TemplateError
from factorwise.kernels.compile.programs import WHOLE, Program
from factorwise.model.model import Model
from factorwise.model.template import AnyTemplate
from factorwise.types import Float64s, Int32s
from factorwise.world.kinds import check_kind


class ModelPrograms(NamedTuple):
    """The programs of a model's templates, and the arrays of the world extended by what they read."""

    templates: Sequence[Program]
    arrays: Any


def model_programs(
    model: Model,
    world: Any,
    weights: Float64s | None = None,
    arrays: Any = None,
    *,
    learning: bool = False,
    groups: Int32s | None = None,
) -> ModelPrograms:
    """Make the programs of all templates of a model for one world.

    A template has a method ``program(world, offset, weights)``, which returns its own program, or a method
    ``add_to(layout, offset)``, which adds it to the layout of its kind, ``template.layout(world)``; a layout
    makes one program of many templates.

    weights
        What the programs score with; a copy of the model's weights by default.
    arrays
        The arrays of the world that is walked over; ``world.arrays`` by default.
    learning
        Whether ``weights`` may change during the walk; a layout may have ``learning_programs`` for that.
    groups : int32[items]
        Group numbers: the walk never brings items of different groups together. Templates with
        ``asks_for_groups`` use it. None if any two items may meet.
    """
    scored = model.weights.copy() if weights is None else weights
    laid_out = world.arrays if arrays is None else arrays
    if not hasattr(world, "parts"):
        return _programs(list(model.parts()), world, scored, laid_out, learning=learning, groups=groups)
    programs: list[Program] = []
    by_part: dict[str, list[tuple[Any, int]]] = {}
    template: Any
    for template, offset in model.parts():
        part = getattr(template, "part", WHOLE)
        by_part.setdefault(part, []).append((template if part == WHOLE else template.inner, offset))
    for part, templates in by_part.items():
        if part == WHOLE:
            part_programs = _programs(templates, world, scored, laid_out, learning=learning)
            programs += [program.within(WHOLE, 0) for program in part_programs.templates]
            continue
        part_world, own = world.part(part), getattr(laid_out, part)
        part_programs = _programs(templates, part_world, scored, own, learning=learning)
        programs += [program.within(part, world.first(part)) for program in part_programs.templates]
        laid_out = laid_out._replace(**{part: part_programs.arrays})
    return ModelPrograms(programs, laid_out)


def _programs(
    templates: Sequence[tuple[AnyTemplate, int]],
    world: Any,
    scored: Float64s,
    laid_out: Any,
    *,
    learning: bool,
    groups: Int32s | None = None,
) -> ModelPrograms:
    """Make the programs of templates, each with the offset of its weights, for one world."""
    programs: list[Program] = []
    layouts: dict[Any, Any] = {}
    for template, offset in templates:
        check_kind(template, world)
        if hasattr(template, "program"):
            more = {"groups": groups} if getattr(template, "asks_for_groups", False) else {}
            programs.append(template.program(world, offset, scored, **more))
        elif hasattr(template, "add_to"):
            kind = template.layout
            if kind not in layouts:
                layouts[kind] = kind(world)
            template.add_to(layouts[kind], offset)
        else:
            raise TemplateError(_no_program(template))
    for layout in layouts.values():
        make = getattr(layout, "learning_programs", layout.programs) if learning else layout.programs
        programs += make(scored)
        laid_out = layout.with_columns(laid_out)
    return ModelPrograms(programs, laid_out)


def _no_program(template: AnyTemplate) -> str:
    return (
        f"template {template.name!r} ({type(template).__name__}) has no program: give it a method"
        " program(world, offset, weights) that returns Program(gain=...), or use engine='plain'."
    )
