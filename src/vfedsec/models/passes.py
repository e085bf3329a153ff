"""Forward and backward through a bottom network, in general and by hand for a single affine map.

The second is there because it runs for every mini-batch of every party, and autograd would cost it
several times the arithmetic itself. Both leave the gradient in the `.grad` of the parameters.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from vfedsec.models.flat import FlatParameters
from vfedsec.models.linear import LinearByHand, is_trainable_linear
from vfedsec.protocol.interfaces import Floats


class Pass(Protocol):
    """One network, forward and backward."""

    keeps_zeros: bool
    """Whether a row of zeros gives an output of exact zeros and adds nothing to any gradient."""

    def forward(self, features: Tensor, *, training: bool) -> Floats:
        """The outputs (batch, width), in memory that nothing else uses."""

    def backward(self, gradient: Tensor) -> None:
        """The parameters' gradients, from the gradient (batch, width) of the last training pass."""

    def forget(self) -> None:
        """Drop what was kept for `backward`."""


class ModulePass:
    """Any module, by autograd."""

    keeps_zeros = False

    def __init__(self, module: nn.Module, flat: FlatParameters) -> None:
        self._module = module
        self._flat = flat
        self._output: Tensor | None = None

    def forward(self, features: Tensor, *, training: bool) -> Floats:
        """The outputs (batch, width), in memory that nothing else uses.

        A single row has no statistics of its own, so layers that want them use their running ones.
        """
        if self._module.training != (training and len(features) > 1):
            self._module.train(not self._module.training)
        with torch.set_grad_enabled(training):
            output = self._module(features)
        if training:
            self._output = output
        # A copy, since autograd may have saved the output that the caller is free to write to.
        return np.array(output.detach().numpy(), order="C")

    def backward(self, gradient: Tensor) -> None:
        """The parameters' gradients, from the gradient (batch, width) of the last training pass."""
        self._flat.zero_gradient()
        if self._output is not None and self._output.requires_grad:
            torch.autograd.backward(self._output, gradient)

    def forget(self) -> None:
        """Drop the autograd graph."""
        self._output = None


class LinearPass:
    """A single `nn.Linear`, by hand."""

    def __init__(self, layer: nn.Linear) -> None:
        self._linear = LinearByHand(layer)
        self.keeps_zeros = layer.bias is None
        self._features: Tensor | None = None

    def forward(self, features: Tensor, *, training: bool) -> Floats:
        """The outputs (batch, width), in memory that nothing else uses."""
        if training:
            self._features = features
        return self._linear.forward(features).numpy()

    def backward(self, gradient: Tensor) -> None:
        """The parameters' gradients, from the gradient (batch, width) of the last training pass."""
        if self._features is not None:
            self._linear.backward(gradient, self._features)

    def forget(self) -> None:
        """Drop the features of the last training pass."""
        self._features = None


def choose_pass(module: nn.Module, flat: FlatParameters) -> Pass:
    """The fastest pass through this module. Its parameters lie in `flat` already."""
    return LinearPass(module) if is_trainable_linear(module) else ModulePass(module, flat)
