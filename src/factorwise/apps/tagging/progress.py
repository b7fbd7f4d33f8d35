"""The progress bar of training."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tqdm.auto import tqdm

from factorwise.apps.tagging.training import Step


class TrainingBar:
    """Progress bar that shows the objective, the gradient norm and the held-out score of each iteration."""

    def __init__(self, most: int | None, *, shown: bool) -> None:
        self._bar = tqdm(total=most, desc="training", unit="iteration", disable=not shown, leave=True)
        self._score: float | None = None

    def update(self, step: Step) -> None:
        """Show one more iteration."""
        if self._bar.disable:
            return
        facts = {"objective": f"{step.objective:.2f}"}
        if step.gradient_norm is not None:
            facts["gradient"] = f"{step.gradient_norm:.3g}"
        self._score = self._score if step.score is None else step.score
        if self._score is not None:
            facts["held-out F1"] = f"{self._score:.4f}"
        self._bar.set_postfix(facts, refresh=False)
        self._bar.update(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()
