"""A training step of the commonest top model without autograd.

For [batch norm] -> [ReLU] -> `nn.Linear` -> a built-in loss the gradients are a handful of
operations. Autograd costs several times that, once a mini-batch, while every party waits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vfedsec.models.batch_norm import PaddedBatchNorm, keep_absent
from vfedsec.models.head import Head
from vfedsec.models.linear import LinearByHand, gradient_of, is_trainable_linear
from vfedsec.models.tasks import TaskLoss

_batch_norm_backward = torch.ops.aten.native_batch_norm_backward.default
_threshold_backward = torch.ops.aten.threshold_backward.default


class ClosedFormStep:
    """Sets the gradients of a head whose model is an `nn.Linear`, on two rows or more."""

    def __init__(self, head: Head, linear: LinearByHand, task: TaskLoss) -> None:
        self._norm = None if head.norm is None else _BatchNormByHand(head.norm)
        self._rectify = head.rectify
        self._linear = linear
        self._task = task

    def __call__(self, embedding: Tensor, present: Tensor | None, targets: Tensor) -> tuple[float, Tensor]:
        """The loss, and its gradient by the embedding (batch, width).

        Columns outside the mask `present` (width,) count as zeros after the batch norm.
        """
        embedding = rows = _masked(embedding, present)
        if self._norm is not None:
            rows = _masked(self._norm.forward(embedding, present), present)
        if self._rectify:
            rows = torch.relu(rows)
        outputs = self._linear.forward(rows)
        loss, gradient = self._task.loss_and_gradient(outputs, targets)
        self._linear.backward(gradient, rows)
        gradient = _masked(self._linear.backward_rows(gradient), present)
        if self._rectify:
            gradient = _threshold_backward(gradient, rows, 0)
        if self._norm is not None:
            gradient = self._norm.backward(gradient, embedding)
        return loss.item(), gradient


def closed_form_step(head: Head, task: TaskLoss) -> ClosedFormStep | None:
    """The step for this head, if it has that form. Its parameters have their `.grad` already."""
    if not is_trainable_linear(head.model):
        return None
    return ClosedFormStep(head, LinearByHand(head.model), task)


def _masked(rows: Tensor, present: Tensor | None) -> Tensor:
    return rows if present is None else torch.where(present, rows, 0.0)


class _BatchNormByHand:
    """Training passes through a `PaddedBatchNorm` on two rows or more."""

    def __init__(self, norm: PaddedBatchNorm) -> None:
        self._weight, self._bias = norm.weight.data, norm.bias.data
        self._weight_gradient = gradient_of(norm.weight)
        self._bias_gradient = gradient_of(norm.bias)
        self._running = norm.running_mean, norm.running_var
        self._momentum, self._epsilon = norm.momentum, norm.epsilon
        self._batch: Sequence[Tensor] = ()

    def forward(self, rows: Tensor, present: Tensor | None) -> Tensor:
        """Normalise every column; the running statistics of absent ones stay."""
        mean, variance = self._running
        if present is not None:
            mean, variance = mean.clone(), variance.clone()
        output, *self._batch = torch.native_batch_norm(
            rows, self._weight, self._bias, mean, variance, True, self._momentum, self._epsilon
        )
        if present is not None:
            keep_absent(present, (mean, variance), self._running)
        return output

    def backward(self, gradient: Tensor, rows: Tensor) -> Tensor:
        """The gradient of the rows that `forward` got; sets those of scale and shift."""
        gradients: tuple[Tensor, Tensor, Tensor] = _batch_norm_backward(
            gradient,
            rows,
            self._weight,
            *self._running,
            *self._batch,
            True,
            self._epsilon,
            [True, True, True],
        )
        self._weight_gradient.copy_(gradients[1])
        self._bias_gradient.copy_(gradients[2])
        return gradients[0]
