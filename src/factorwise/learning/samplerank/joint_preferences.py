"""Preferences over joint worlds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks import joints
from factorwise.learning.samplerank.preferences import ProgramPreference
from factorwise.world.joint import Joint
from factorwise.world.kinds import check_kind


class JointPreference(ProgramPreference):
    """The sum of preferences, each over one of the worlds of a `Joint`.

    preferences
        The preferences by the name of their world; worlds without one do not count.
    shares
        The factor of each; 1 by default.
    """

    worlds = (Joint,)

    def __init__(
        self, preferences: Mapping[str, ProgramPreference], shares: Mapping[str, float] | None = None
    ) -> None:
        if not preferences:
            raise InvalidArgumentError("a joint preference needs preferences: give {'entities': ...}.")
        self.preferences = dict(preferences)
        self.shares = {name: float((shares or {}).get(name, 1.0)) for name in preferences}

    def program(self, parts: Surroundings) -> Program:
        """Return the program that judges one change by the preference of the world that it changes."""
        world = parts.world
        owner = np.full(world.n_changes, -1, np.int64)
        programs: list[Program] = []
        options: list[dict[str, Any]] = [{} for _ in range(world.n_changes)]
        for number, (name, preference) in enumerate(self.preferences.items()):
            check_kind(preference, world.part(name))
            own = preference.program(replace(parts, world=world.part(name)))
            programs.append(own.copy_with(own.functions, own.worlds, part=name))
            if (
                "applied" in own.functions
            ):  # changes of its first kind: items that move, not clusters that change their type
                options[world.first(name)] = {"applied": joints.applied_within}
            owner[[at for at in range(world.n_changes) if world.owner(at) == name]] = number
        arrays: dict[str, Any] = {
            "inner": Pointers(programs, ("judge", "applied", "begin", "value")),
            "share": np.array(list(self.shares.values())),
            "first": np.array([world.first(name) for name in self.preferences], np.int64),
            "owner": owner,
        }
        return Program(
            judge=joints.judge_within,
            begin=joints.begin_within,
            value=joints.value_within,
            worlds=options[1:],
            arrays=arrays,
            name="preferences",
            **options[0],
        )
