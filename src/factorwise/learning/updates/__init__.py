"""Update rules: how a pair of worlds in the wrong order, or with too small a lead, corrects the weights.

A rule is a small immutable record with a function that walks call, compiled or interpreted; it keeps what it
learns in its own arrays. Give `SampleRank` the name of a rule, a rule with its own settings, or a function in
the terms of `factorwise.kernels.walks.rules` (see `OwnRule`).

>>> as_rule("mira", cap=0.1).function.__name__
'update_passive_aggressive'
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from factorwise.errors import InvalidArgumentError, require
from factorwise.learning.updates.adagrad import AdaGrad
from factorwise.learning.updates.arow import Arow
from factorwise.learning.updates.base import OwnRule, UpdateArrays, UpdateRule, averaged
from factorwise.learning.updates.confidence_weighted import ConfidenceWeighted
from factorwise.learning.updates.passive_aggressive import Mira, PassiveAggressive
from factorwise.learning.updates.unit import Unit

__all__ = [
    "RULES",
    "AdaGrad",
    "Arow",
    "ConfidenceWeighted",
    "Mira",
    "OwnRule",
    "PassiveAggressive",
    "Unit",
    "UpdateArrays",
    "UpdateRule",
    "as_rule",
    "averaged",
    "capped_rule",
]

RULES: dict[str, Callable[..., UpdateRule]] = {
    "unit": Unit,
    "mira": partial(PassiveAggressive, variant="PA-I"),
    "pa": partial(PassiveAggressive, variant="PA"),
    "pa-i": partial(PassiveAggressive, variant="PA-I"),
    "pa-ii": partial(PassiveAggressive, variant="PA-II"),
    "cw": partial(ConfidenceWeighted, form="variance"),
    "cw-deviation": partial(ConfidenceWeighted, form="deviation"),
    "arow": Arow,
    "adagrad": AdaGrad,
}
"""What the name of a rule stands for, called with the settings that the name leaves open."""


def as_rule(rule: str | UpdateRule | Callable[..., float], **settings: Any) -> UpdateRule:
    """Return the rule of that name with the given ``settings``; a rule or a function is accepted, too.

    >>> as_rule("mira", cap=0.1)
    PassiveAggressive(variant='PA-I', cap=0.1, margin=1.0, scale_by_gain=False, only_misranked=False)
    """
    if isinstance(rule, UpdateRule):
        if settings:
            raise InvalidArgumentError(
                f"settings {sorted(settings)} were given with {rule!r}, which has its own: make the"
                " rule with them, or give its name."
            )
        return rule
    if callable(rule):
        return OwnRule(rule, settings)
    if rule not in RULES:
        close = difflib.get_close_matches(str(rule), RULES, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidArgumentError(
            f"{rule!r} is not the name of an update rule.{guess} Use one of {', '.join(RULES)}, or a"
            " rule such as Unit(rate=0.5)."
        )
    rule_class = RULES[rule]
    fixed = rule_class.keywords if isinstance(rule_class, partial) else {}
    known = [item.name for item in fields(rule_class()) if item.name not in fixed]
    for name in settings:
        require(name in known, f"a setting of {rule!r}", name, "one of " + ", ".join(known))
    return rule_class(**settings)


def capped_rule(rule: str | UpdateRule | Callable[..., float], cap: float) -> UpdateRule:
    """Return the rule of that name, with ``cap`` if it has one; a rule is returned unchanged.

    >>> capped_rule("mira", 0.01).cap, capped_rule("unit", 0.01)
    (0.01, Unit(rate=1.0, decay=0.0, strict=False))
    """
    return as_rule(rule, cap=cap) if rule in ("mira", "pa-i", "pa-ii") else as_rule(rule)
