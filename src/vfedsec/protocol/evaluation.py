"""Collects the outputs of a pass over held-out rows until it is complete."""

from __future__ import annotations

import numpy as np

from vfedsec.config.job import TaskKind
from vfedsec.metrics import evaluate
from vfedsec.protocol.interfaces import Floats
from vfedsec.protocol.messages import Batch


class Pass:
    """One pass over the rows of a kind."""

    def __init__(self, task: TaskKind, batches: int) -> None:
        self._task = task
        self._batches = batches
        self._parts: dict[int, tuple[Floats, Floats]] = {}

    def add(self, batch: Batch, labels: Floats, outputs: Floats) -> None:
        """The labels and outputs of one batch, padding cut off."""
        self._parts[batch.index] = (labels, outputs)

    @property
    def is_complete(self) -> bool:
        """Whether every batch is in."""
        return len(self._parts) == self._batches

    def metrics(self) -> dict[str, float]:
        """The metrics that fit the task."""
        parts = [self._parts[index] for index in sorted(self._parts)]
        labels = np.concatenate([part[0] for part in parts])
        outputs = np.concatenate([part[1] for part in parts])
        return evaluate(self._task, labels, outputs)
