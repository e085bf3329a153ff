"""What a progress view knows of the rounds so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from vfedsec import trace
from vfedsec.config.job import Job
from vfedsec.metrics import main_metric

PRESENCE_ROUNDS = 50
"""The share of a party's answers is taken over so many of the last training rounds."""

AWAY_ROUNDS = 3
"""A party that missed so many in a row is called away; with fewer, a fast run would flicker."""

_LOSS_MEMORY = 0.9


class Progress:
    """Training rounds of one run, smoothed enough to be read as they go by."""

    def __init__(self, job: Job, title: str, planned: int, now: float) -> None:
        self.title = title
        self.planned = planned
        self.metric = main_metric(job.task.kind)[0]
        self.value: float | None = None
        """Of the metric, in the last evaluation."""
        self.loss: float | None = None
        self.missing: tuple[str, ...] = ()
        """Who took no part in the last training round."""
        self.outcomes: dict[trace.Outcome, int] = {"trained": 0, "padded": 0, "dropped": 0}
        self._answers = {party: deque[bool](maxlen=PRESENCE_ROUNDS) for party in job.passive_parties}
        self._started = now

    @property
    def rounds(self) -> int:
        """Training rounds gone by."""
        return sum(self.outcomes.values())

    def rate(self, now: float) -> float:
        """Training rounds a second, evaluations included in the time."""
        return self.rounds / (now - self._started) if now > self._started else 0.0

    def seconds(self, now: float) -> float:
        """Since the view began to watch."""
        return now - self._started

    def presence(self) -> dict[str, float]:
        """The share of recent rounds that each party answered; 0 for one that is away."""
        return {party: _presence(answers) for party, answers in self._answers.items()}

    def take(self, event: trace.Event) -> None:
        """Count an event."""
        if isinstance(event, trace.RunStarted):
            self.planned = event.rounds_planned
        elif isinstance(event, trace.Evaluated):
            self.value = event.metrics.get(self.metric)
        elif isinstance(event, trace.RoundEnded) and event.kind == "train":
            self.outcomes[event.outcome] += 1
            self._take_loss(event.loss)
            self._take_answers({*event.missing, *event.away})

    def _take_loss(self, loss: float | None) -> None:
        if loss is not None:
            self.loss = loss if self.loss is None else _LOSS_MEMORY * self.loss + (1 - _LOSS_MEMORY) * loss

    def _take_answers(self, silent: Collection[str]) -> None:
        self.missing = tuple(party for party in self._answers if party in silent)
        for party, answers in self._answers.items():
            answers.append(party not in silent)


def _presence(answers: deque[bool]) -> float:
    if not answers:
        return 1.0
    last = list(answers)[-AWAY_ROUNDS:]
    return sum(answers) / len(answers) if any(last) or len(last) < AWAY_ROUNDS else 0.0
