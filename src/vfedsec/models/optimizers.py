"""SGD and Adam on one flat tensor.

They give what `torch.optim` gives, at a fraction of its cost per step. Every operation is
elementwise, so that replicas which apply the same gradients stay bit-identical.

A parameter whose gradient is zero, as those of a padded slice are, may still move: by the momentum
of SGD or the moments of Adam, as it would in `torch.optim`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from vfedsec.config.job import Training


class Optimizer(ABC):
    """Steps on one flat parameter vector of a fixed size."""

    @abstractmethod
    def step(self, values: Tensor, gradient: Tensor) -> None:
        """Move the values (size,) in place, given their gradient (size,)."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """What the next step depends on, by name; write into these tensors to restore it."""


class Sgd(Optimizer):
    """Stochastic gradient descent: v = momentum v + g, then p = p - learning_rate v."""

    def __init__(self, size: int, learning_rate: float, momentum: float = 0.0) -> None:
        self._learning_rate = learning_rate
        # A tensor, since torch takes longer to multiply by a number of Python's.
        self._momentum = torch.tensor(momentum)
        self._velocity = torch.zeros(size) if momentum else None

    def step(self, values: Tensor, gradient: Tensor) -> None:
        """Move the values (size,) in place, given their gradient (size,)."""
        if self._velocity is not None:
            gradient = self._velocity.mul_(self._momentum).add_(gradient)
        values.add_(gradient, alpha=-self._learning_rate)

    def state(self) -> dict[str, Tensor]:
        """The velocity, where there is momentum."""
        return {} if self._velocity is None else {"optimizer.velocity": self._velocity}


class Adam(Optimizer):
    """Adam with bias correction (Kingma and Ba, 2015), no weight decay."""

    def __init__(
        self,
        size: int,
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        self._learning_rate = learning_rate
        self._betas = betas
        self._epsilon = epsilon
        self._first = torch.zeros(size)
        self._second = torch.zeros(size)
        self._root = torch.empty(size)
        # Tensors, since torch takes longer to compute with a number of Python's.
        self._beta2 = torch.tensor(betas[1])
        self._scaled_epsilon = torch.tensor(epsilon)
        self._scaled_epsilon_array = self._scaled_epsilon.numpy()
        # Unsigned, so that no state that loads can count backwards to a division by zero.
        self._steps = torch.zeros(1, dtype=torch.uint32)
        self._steps_array = self._steps.numpy()

    def step(self, values: Tensor, gradient: Tensor) -> None:
        """Move the values (size,) in place, given their gradient (size,)."""
        beta1, beta2 = self._betas
        steps = int(self._steps_array[0]) + 1
        self._steps_array[0] = steps
        self._first.lerp_(gradient, 1 - beta1)
        self._second.mul_(self._beta2).addcmul_(gradient, gradient, value=1 - beta2)
        # m / (sqrt(v) / c + epsilon) is c m / (sqrt(v) + c epsilon), one operation less.
        correction = math.sqrt(1 - beta2**steps)
        self._scaled_epsilon_array[...] = self._epsilon * correction
        denominator = torch.sqrt(self._second, out=self._root).add_(self._scaled_epsilon)
        size = self._learning_rate * correction / (1 - beta1**steps)
        values.addcdiv_(self._first, denominator, value=-size)

    def state(self) -> dict[str, Tensor]:
        """Both moments and the number of steps."""
        return {
            "optimizer.first_moment": self._first,
            "optimizer.second_moment": self._second,
            "optimizer.steps": self._steps,
        }


def build_optimizer(training: Training, size: int) -> Optimizer:
    """The optimizer that a job asks for."""
    if training.optimizer == "adam":
        return Adam(size, training.learning_rate)
    return Sgd(size, training.learning_rate, training.momentum)
