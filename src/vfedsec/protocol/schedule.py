"""In which order mini-batches come: training epochs, evaluations between them, a last pass over the test rows.

The next batch is known one ahead, because its envelopes ride on the replies of the current one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from vfedsec.config.job import Job, Training
from vfedsec.protocol.interfaces import BatchKind
from vfedsec.protocol.messages import Batch, Ready


class Schedule:
    """A queue of batches with a look ahead of one."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._rest = batches
        self._queue: deque[Batch] = deque()
        self._fill()

    @property
    def current(self) -> Batch | None:
        """The batch of this round."""
        return self._queue[0] if self._queue else None

    @property
    def following(self) -> Batch | None:
        """The batch of the next round."""
        return self._queue[1] if len(self._queue) > 1 else None

    def advance(self) -> None:
        """Go to the next batch."""
        self._queue.popleft()
        self._fill()

    def _fill(self) -> None:
        while len(self._queue) < 2:
            batch = next(self._rest, None)
            if batch is None:
                return
            self._queue.append(batch)


def rounds_planned(training: Training, sizes: Ready) -> int:
    """Training rounds of a job."""
    return training.rounds or training.epochs * sizes.train_batches


def training_schedule(job: Job, sizes: Ready) -> Iterator[Batch]:
    """Everything a training run goes through.

    After the last round the held-out rows come once: where the test rows stand in for validation rows, a second pass
    of the same network over them would cost traffic, and let the aggregator match them row by row.
    """
    training, every = job.training, job.training.evaluate_every
    if every is None:
        every = sizes.train_batches
    total = rounds_planned(training, sizes)
    passes = 0
    for number in range(total):
        epoch, index = divmod(number, sizes.train_batches)
        yield Batch("train", epoch, index)
        if every and (number + 1) % every == 0 and number + 1 < total:
            yield from one_pass("validation", passes, sizes.validation_batches)
            passes += 1
    if job.split.validation:
        yield from one_pass("validation", passes, sizes.validation_batches)
    yield from one_pass("test", 0, sizes.test_batches)


def one_pass(kind: BatchKind, number: int, batches: int) -> Iterator[Batch]:
    """Every batch of a kind once."""
    return (Batch(kind, number, index) for index in range(batches))
