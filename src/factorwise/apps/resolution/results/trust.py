"""What is said of how far the probabilities of a model can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRUSTED = 0.05  # calibration error of uncertain pairs up to which probabilities are called calibrated


def describe_calibration(training: Mapping[str, Any]) -> str:
    """Say in plain words whether probabilities are calibrated.

    training
        What a model says of how it was learned. Sure pairs, nearly all, hide the error of uncertain ones, so
        these alone decide.
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
