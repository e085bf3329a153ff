"""How good a model is as training goes on: one point an evaluation, alike for a federation and for its baselines."""

from __future__ import annotations

import msgspec

from vfedsec import trace


class Point(msgspec.Struct, frozen=True):
    """One evaluation on held-out rows."""

    rounds: int
    """Training rounds attempted so far, the dropped ones among them."""
    rounds_used: int
    """Those that moved the model."""
    kind: str
    """`validation` between rounds, `test` for the last one."""
    metrics: dict[str, float]


class HistoryRecorder:
    """A trace sink that counts training rounds and keeps a point for every evaluation."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self._rounds = 0

    def __call__(self, event: trace.Event) -> None:
        """Take one event."""
        if isinstance(event, trace.RoundEnded) and event.kind == "train":
            self._rounds += 1
        elif isinstance(event, trace.Evaluated):
            self.points.append(Point(self._rounds, event.trained_rounds, event.kind, event.metrics))
