"""What the protocol asks of the code around it. It sees numbers through these, and nothing of torch or of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int32]

ABSENT_ROW = -1
"""Stands in a batch where a party does not hold the row, or the batch is shorter than its size."""

BatchKind = Literal["train", "validation", "test", "predict"]


class BottomModel(Protocol):
    """A party's part of the network, bound to that party's encoded table."""

    @property
    def width(self) -> int:
        """Columns of its embedding."""

    @property
    def size(self) -> int:
        """How many trainable parameters it has."""

    def forward(self, rows: Rows, *, training: bool) -> Floats:
        """The embedding of these rows, (batch, width); exact zeros where a row is `ABSENT_ROW`.

        With `training`, what `backward` needs is kept until `backward`, `forget` or the next `forward`.
        """

    def backward(self, gradient: Floats) -> Floats:
        """The flat gradient (size,) of the parameters, from the loss gradient (batch, width) of the last training
        forward."""

    def forget(self) -> None:
        """Drop what was kept for `backward`."""

    def apply(self, gradient: Floats) -> None:
        """One optimizer step with this flat gradient (size,)."""

    def dump(self) -> bytes:
        """Parameters, buffers and optimizer state."""

    def load(self, state: bytes) -> None:
        """Take a state that `dump` gave. Raises `ProtocolError` when it does not fit this model."""


class TopModel(Protocol):
    """The aggregator's part of the network."""

    def balance(self, class_rows: Sequence[int]) -> None:
        """Before the first step of a job with `class_weights = "balanced"`: how many training rows each class has, at
        least one in all."""

    def train(self, embedding: Floats, present: Sequence[bool], labels: Floats, valid: int) -> tuple[float, Floats]:
        """One step on the first `valid` rows; the loss, and its gradient by the embedding (batch, width).

        `present` says which slices hold numbers; the others are padded and get a zero gradient. `labels` are class
        numbers of the task, or finite values: that has been checked.
        """

    def predict(self, embedding: Floats, present: Sequence[bool]) -> Floats:
        """Outputs (batch, outputs): probabilities of the positive class, of each class, or the value."""

    def dump(self) -> bytes:
        """Parameters, buffers and optimizer state."""

    def load(self, state: bytes) -> None:
        """Take a state that `dump` gave."""


class Batches(Protocol):
    """The active party's choice of rows. Row numbers are those of its own aligned table."""

    def count(self, kind: BatchKind) -> int:
        """How many batches one pass over the rows of this kind takes."""

    def rows(self, kind: BatchKind, epoch: int, index: int) -> Rows:
        """The rows of one batch, always batch_size long; a short batch ends in `ABSENT_ROW`. The same every time."""

    def labels(self, rows: Rows) -> Floats:
        """Their labels (batch,): class numbers or values; zeros for `ABSENT_ROW`."""

    def class_rows(self, classes: int) -> list[int]:
        """How many training rows each class has, where labels are class numbers below `classes`."""

    def partner_rows(self, party: str, rows: Rows) -> Rows:
        """The same rows in that passive party's own row numbers; `ABSENT_ROW` where it holds none."""

    def ids_of(self, rows: Rows) -> list[str]:
        """Whose these rows are, leaving out `ABSENT_ROW`."""


Mail = list[tuple[str, bytes]]
"""Receiver (or sender) and body."""


class Preparation(Protocol):
    """Everything between a raw table and the first round: a conversation with the other parties.

    Its mail is sealed end to end by the party that carries it; the aggregator sees from whom to whom, and sizes.
    """

    def begin(self) -> Mail:
        """First letters."""

    def receive(self, sender: str, body: bytes) -> Mail:
        """Take a letter, answer with any number. Raises `ProtocolError` or `DataError` when it makes no sense."""

    def progress(self) -> tuple[int, int]:
        """How many rows of this party and its partners have been compared, and how many there are to compare."""

    def finish(self, model_seed: bytes) -> tuple[BottomModel, Batches | None]:
        """After the last letter: the bottom model, its first weights drawn from the seed, and for the active party
        its batches. Raises `DataError` when a letter it needs never came."""
