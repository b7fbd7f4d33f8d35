"""Describe whether the probabilities of a model are calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRUSTED = 0.05  # largest calibration error of uncertain pairs of a calibrated model


def describe_calibration(training: Mapping[str, Any]) -> str:
    """Describe in one sentence whether probabilities are calibrated.

    training
        The training record of a model. Only uncertain pairs decide, because nearly all pairs are certain and
        would hide their error.
    """
    if not training.get("reliability"):
        return "not calibrated, for want of held-out entities: probabilities only rank pairs"
    error, chance = training.get("uncertain_error"), training.get("chance_error")
    if error is None or chance is None:
        return "calibration unknown: no pair of held-out entities was uncertain"
    text = f"error {error:.3f} of the probabilities of uncertain pairs, on held-out entities"
    if error <= TRUSTED:
        return f"calibrated: {text}"
    if error <= (training.get("chance_limit") or 0.0):
        return (
            f"not shown to be calibrated: {text}, but so few held-out entities are uncertain that faultless"
            f" probabilities would show {chance:.3f}: take them as a ranking"
        )
    return f"not calibrated: {text} ({chance:.3f} would be chance): take them as a ranking"
