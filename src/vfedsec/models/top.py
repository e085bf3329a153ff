"""The aggregator's part of the network: from the joint embedding to a loss and its gradient."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from vfedsec.config.job import Job
from vfedsec.errors import LocalProtocolError, naming
from vfedsec.models.arrays import Landing, aligned_tensor
from vfedsec.models.batch_norm import PaddedBatchNorm
from vfedsec.models.closed_form import closed_form_step
from vfedsec.models.flat import FlatParameters
from vfedsec.models.head import Head
from vfedsec.models.optimizers import build_optimizer
from vfedsec.models.registry import build_module
from vfedsec.models.state import dump_tensors, load_tensors
from vfedsec.models.tasks import TaskLoss, build_task_loss, load_custom_loss
from vfedsec.protocol.interfaces import Floats


class TorchTop:
    """A `TopModel` on torch.

    `slices` are the columns of the embedding that can be missing together: one slice a group for
    `concat`, a single one for `sum`. A missing slice counts as zeros after the batch norm, moves no
    running statistics and gives no gradient; momentum may still move parameters that it left alone.

    Raises:
        ConfigError: The job's top model or loss cannot be built.
    """

    def __init__(
        self,
        job: Job,
        slices: Sequence[slice],
        seed: bytes,
        allowed_packages: Collection[str] = (),
    ) -> None:
        self._width = job.embedding_width
        self._slices = tuple(slices)
        self._head = _build_head(job, seed, allowed_packages)
        self._custom_loss = load_custom_loss(job.task, allowed_packages)
        self._job_task = job.task
        self._flat = FlatParameters(self._head)
        self._optimizer = build_optimizer(job.training, self._flat.size)
        self._embedding = Landing()
        self._awaits_class_rows = job.task.is_balanced
        self._use(build_task_loss(job.task))

    def balance(self, class_rows: Sequence[int]) -> None:
        """Weigh classes by how many training rows each has. Raises `LocalProtocolError` if the job does not say so."""
        if not self._job_task.is_balanced:
            raise LocalProtocolError("a top model was told to balance classes that the job does not balance")
        self._use(build_task_loss(self._job_task, class_rows))
        self._awaits_class_rows = False

    def train(self, embedding: Floats, present: Sequence[bool], labels: Floats, valid: int) -> tuple[float, Floats]:
        """One step on the first `valid` rows; the loss, and its gradient by the embedding.

        The gradient (batch, width) is zero for missing slices and for rows past `valid`.

        Raises:
            LocalProtocolError: The arguments do not fit each other, or `balance` was left out.
        """
        if self._awaits_class_rows:
            raise LocalProtocolError("a top model cannot balance classes before it knows how many rows each has")
        if not 1 <= valid <= min(len(embedding), len(labels)):
            raise LocalProtocolError(
                f"a top model cannot train on {valid} rows of {len(embedding)} embeddings and {len(labels)} labels"
            )
        targets = self._task.targets(labels[:valid])
        rows = self._embedding.take(embedding)
        mask = self._mask(present)
        if self._closed_form is not None and valid > 1:
            loss, gradient = self._closed_form(rows[:valid], mask, targets)
        else:
            loss, gradient = self._by_autograd(rows, mask, targets, valid)
        self._optimizer.step(self._flat.values, self._flat.gradient)
        if len(gradient) < len(rows):
            gradient = functional.pad(gradient, (0, 0, 0, len(rows) - valid))
        return loss, gradient.numpy()

    def predict(self, embedding: Floats, present: Sequence[bool]) -> Floats:
        """Probabilities of the positive class, or of each class, or values, (batch, outputs)."""
        self._set_training(False)
        with torch.inference_mode():
            outputs = self._head(aligned_tensor(embedding), self._mask(present), len(embedding))
            return self._task.predict(outputs).numpy()

    def dump(self) -> bytes:
        """Parameters, buffers and optimizer state."""
        return dump_tensors(self._state())

    def load(self, state: bytes) -> None:
        """Take a state that `dump` gave. Raises `RemoteProtocolError` when it does not fit."""
        load_tensors(state, self._state())

    def _use(self, task: TaskLoss) -> None:
        self._task = task
        self._loss = self._custom_loss or task.loss
        self._closed_form = None if self._custom_loss else closed_form_step(self._head, task)

    def _by_autograd(self, rows: Tensor, mask: Tensor | None, targets: Tensor, valid: int) -> tuple[float, Tensor]:
        # A single row has no statistics, so layers that want them use their running ones.
        self._set_training(valid > 1)
        self._flat.zero_gradient()
        rows = rows.detach().requires_grad_()  # a tensor of its own, whose gradient nobody else adds to
        loss = self._loss(self._head(rows, mask, valid), targets)
        loss.backward()
        return loss.item(), torch.zeros_like(rows) if rows.grad is None else rows.grad

    def _set_training(self, training: bool) -> None:
        if self._head.training != training:
            self._head.train(training)

    def _mask(self, present: Sequence[bool]) -> Tensor | None:
        """Which columns are there, (width,); None stands for all."""
        if len(present) != len(self._slices):
            raise LocalProtocolError(f"a top model with {len(self._slices)} slices was told about {len(present)}")
        if all(present):
            return None
        mask = torch.zeros(self._width, dtype=torch.bool)
        for columns, there in zip(self._slices, present, strict=True):
            mask[columns] = there
        return mask

    def _state(self) -> dict[str, Tensor]:
        return self._flat.state() | self._optimizer.state()


def _build_head(job: Job, seed: bytes, allowed_packages: Collection[str]) -> Head:
    width = job.embedding_width
    norm = PaddedBatchNorm(width) if job.top.batch_norm else None
    with naming(key="top.model"):
        model = build_module(job.top.model, width, job.output_width, seed, allowed_packages)
    return Head(norm, job.top.activation == "relu", model)
