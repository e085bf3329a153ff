"""Collects the outputs of a pass over held-out rows until its last batch has ended, used or lost.

A lost batch does not come again: a second sum over the same rows, with other parties in it, could tell the aggregator
single embeddings. The metrics are of the rows that came.
"""

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
        self._lost = 0

    def add(self, batch: Batch, labels: Floats, outputs: Floats) -> None:
        """The labels and outputs of one batch, padding cut off."""
        self._parts[batch.index] = (labels, outputs)

    def lose(self) -> None:
        """A batch ended without outputs."""
        self._lost += 1

    @property
    def is_complete(self) -> bool:
        """Whether every batch has ended."""
        return len(self._parts) + self._lost == self._batches

    @property
    def rows(self) -> int:
        """How many rows came."""
        return sum(len(labels) for labels, _ in self._parts.values())

    def metrics(self) -> dict[str, float]:
        """The metrics that fit the task, of the rows that came; none if none did."""
        if not self._parts:
            return {}
        parts = [self._parts[index] for index in sorted(self._parts)]
        labels = np.concatenate([part[0] for part in parts])
        outputs = np.concatenate([part[1] for part in parts])
        return evaluate(self._task, labels, outputs)
