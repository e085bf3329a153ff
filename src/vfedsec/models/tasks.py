"""What a task makes of the outputs of the top model: a loss, and predictions.

Outputs are (rows, outputs), labels (rows,): class numbers or values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from vfedsec.config.job import Task
from vfedsec.errors import ConfigError, naming
from vfedsec.models.import_path import load_class, told
from vfedsec.protocol.interfaces import Floats


class TaskLoss(ABC):
    """A loss, its gradient in closed form, and the predictions that belong to it."""

    @abstractmethod
    def targets(self, labels: Floats) -> Tensor:
        """The labels as the loss takes them; whoever took them from outside has checked that they are of the task."""

    @abstractmethod
    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss over the rows, for autograd."""

    @abstractmethod
    def loss_and_gradient(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The same loss, and its gradient by the outputs (rows, outputs), without autograd."""

    @abstractmethod
    def predict(self, outputs: Tensor) -> Tensor:
        """Probabilities of the positive class, of each class, or the value, (rows, outputs)."""


class BinaryLoss(TaskLoss):
    """Cross entropy of one logit a row."""

    def targets(self, labels: Floats) -> Tensor:
        """Zeros and ones, (rows, 1)."""
        return _column(labels)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss over the rows, for autograd."""
        return functional.binary_cross_entropy_with_logits(outputs, targets)

    def loss_and_gradient(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient is (sigmoid(z) - y) / rows, the loss softplus(z) - y z: a third of torch's time for it."""
        gradient = torch.sigmoid(outputs).sub_(targets).div_(len(targets))
        return functional.softplus(outputs).sub_(outputs * targets).mean(), gradient

    def predict(self, outputs: Tensor) -> Tensor:
        """Probabilities of the positive class."""
        return torch.sigmoid(outputs)


class MulticlassLoss(TaskLoss):
    """Cross entropy of a logit a class."""

    def targets(self, labels: Floats) -> Tensor:
        """Class numbers, (rows,)."""
        return torch.from_numpy(labels.astype(np.int64))

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss over the rows, for autograd."""
        return functional.cross_entropy(outputs, targets)

    def loss_and_gradient(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient is (softmax(z) - onehot(y)) / rows."""
        logarithms = torch.log_softmax(outputs, 1)
        gradient = torch.exp(logarithms)
        gradient.scatter_add_(1, targets.unsqueeze(1), gradient.new_full((len(targets), 1), -1.0))
        return functional.nll_loss(logarithms, targets), gradient.div_(len(targets))

    def predict(self, outputs: Tensor) -> Tensor:
        """Probabilities of each class."""
        return torch.softmax(outputs, 1)


class RegressionLoss(TaskLoss):
    """Mean squared error of one value a row."""

    def targets(self, labels: Floats) -> Tensor:
        """Values, (rows, 1)."""
        return _column(labels)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss over the rows, for autograd."""
        return functional.mse_loss(outputs, targets)

    def loss_and_gradient(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient is 2 (z - y) / rows."""
        gradient = outputs.sub(targets).mul_(2.0 / len(targets))
        return self.loss(outputs, targets), gradient

    def predict(self, outputs: Tensor) -> Tensor:
        """The values."""
        return outputs


def build_task_loss(task: Task) -> TaskLoss:
    """The loss that fits the kind of task."""
    if task.kind == "multiclass":
        return MulticlassLoss()
    return BinaryLoss() if task.kind == "binary" else RegressionLoss()


def load_custom_loss(task: Task, allowed_packages: Collection[str]) -> nn.Module | None:
    """The loss that a job names by import path, if it does.

    It is called as `loss(outputs, targets)` with what the task's own loss would get: targets are
    float32 (rows, 1), or class numbers int64 (rows,) where there are several classes.

    Raises:
        ConfigError: The path is refused, the loss fails or gives something else than a number, or it has parameters
            that nothing would train.
    """
    if not task.loss:
        return None
    with naming(key="task.loss"):
        loss = _made(task.loss, allowed_packages)
        if any(True for _ in loss.parameters()):
            raise ConfigError(f"loss {task.loss!r} has parameters, and nothing would train them")
        _check_value(task.loss, loss, task)
    return loss


def _made(path: str, allowed_packages: Collection[str]) -> nn.Module:
    found = load_class(path, nn.Module, allowed_packages)
    try:
        return found()
    except Exception as error:  # its code may fail in any way
        raise ConfigError(f"loss {path!r} cannot be made without arguments: {told(error)}") from error


def _check_value(path: str, loss: nn.Module, task: Task) -> None:
    """Try it once, so that a loss that is none is found before the first round."""
    outputs = torch.zeros(2, len(task.classes) if task.kind == "multiclass" else 1, requires_grad=True)
    targets = build_task_loss(task).targets(np.zeros(2, np.float32))
    try:
        value = loss(outputs, targets)
    except Exception as error:  # as above
        shapes = f"outputs {list(outputs.shape)} and targets {list(targets.shape)}"
        raise ConfigError(f"loss {path!r} does not take {shapes}: {told(error)}") from error
    if not isinstance(value, Tensor) or value.shape != () or not value.requires_grad:
        raise ConfigError(f"loss {path!r} must give one number that depends on the outputs")


def _column(labels: Floats) -> Tensor:
    return torch.from_numpy(labels.astype(np.float32)).unsqueeze(1)
