"""What a task makes of the outputs of the top model: a loss, and predictions.

Outputs are (rows, outputs), labels (rows,): class numbers or values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

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


class ClassLoss(TaskLoss):
    """A loss of rows that each belong to one class."""

    @abstractmethod
    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each row, (rows,), for autograd."""


class BinaryLoss(ClassLoss):
    """Cross entropy of one logit a row."""

    def targets(self, labels: Floats) -> Tensor:
        """Zeros and ones, (rows, 1)."""
        return _column(labels)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss over the rows, for autograd."""
        return functional.binary_cross_entropy_with_logits(outputs, targets)

    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each row, (rows,), for autograd."""
        return functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none").squeeze(1)

    def loss_and_gradient(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient is (sigmoid(z) - y) / rows, the loss softplus(z) - y z: a third of torch's time for it."""
        gradient = torch.sigmoid(outputs).sub_(targets).div_(len(targets))
        return functional.softplus(outputs).sub_(outputs * targets).mean(), gradient

    def predict(self, outputs: Tensor) -> Tensor:
        """Probabilities of the positive class."""
        return torch.sigmoid(outputs)


class MulticlassLoss(ClassLoss):
    """Cross entropy of a logit a class."""

    def targets(self, labels: Floats) -> Tensor:
        """Class numbers, (rows,)."""
        return torch.from_numpy(labels.astype(np.int64))

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss over the rows, for autograd."""
        return functional.cross_entropy(outputs, targets)

    def row_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each row, (rows,), for autograd."""
        return functional.cross_entropy(outputs, targets, reduction="none")

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


class WeightedLoss(TaskLoss):
    """The loss of each row times the weight of its class, summed, by the number of rows.

    For a binary and a multi-class task alike the sum is divided by the rows of the batch, as `BCEWithLogitsLoss` of
    torch does, and not by the weights in the batch, as its `CrossEntropyLoss` does: then a batch of frequent classes
    alone would move the model as far as if nothing were weighted, a batch without any weight would divide by zero, and
    steps would not follow the weighted loss over all rows, of which this is an unbiased sample. Weights of mean 1, as
    balanced ones are, leave losses and steps on the scale they have without.
    """

    def __init__(self, unweighted: ClassLoss, class_weights: Sequence[float]) -> None:
        self._unweighted = unweighted
        self._class_weights = torch.tensor(class_weights, dtype=torch.float32)

    def targets(self, labels: Floats) -> Tensor:
        """Those of the unweighted loss."""
        return self._unweighted.targets(labels)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The weighted mean over the rows, for autograd."""
        return (self._unweighted.row_losses(outputs, targets) * self._row_weights(targets)).mean()

    def loss_and_gradient(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The unweighted gradient of each row times its weight."""
        _, gradient = self._unweighted.loss_and_gradient(outputs, targets)
        return self.loss(outputs, targets), gradient.mul_(self._row_weights(targets).unsqueeze(1))

    def predict(self, outputs: Tensor) -> Tensor:
        """Those of the unweighted loss."""
        return self._unweighted.predict(outputs)

    def _row_weights(self, targets: Tensor) -> Tensor:
        return self._class_weights[targets.reshape(-1).long()]


def balanced_weights(class_rows: Sequence[int]) -> tuple[float, ...]:
    """Rows / (classes * rows of the class), as scikit-learn balances classes: their mean over the rows is 1.

    As there, classes are those that occur; the weight of one without rows, which no row takes, is 0.
    """
    rows, classes = sum(class_rows), sum(count > 0 for count in class_rows)
    return tuple(rows / (classes * count) if count else 0.0 for count in class_rows)


def build_task_loss(task: Task, class_rows: Sequence[int] = ()) -> TaskLoss:
    """The loss that fits the kind of task, with the weights that it asks for.

    `class_rows` is how many training rows each class has. Without it, a task that balances its classes gets a loss
    that weighs nothing yet: good for predictions, not for training.
    """
    if task.kind == "regression":
        return RegressionLoss()
    loss = MulticlassLoss() if task.kind == "multiclass" else BinaryLoss()
    weights = balanced_weights(class_rows) if task.class_weights == "balanced" else task.class_weights
    return WeightedLoss(loss, weights) if weights else loss


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
