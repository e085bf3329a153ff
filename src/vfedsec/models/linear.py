"""`nn.Linear` forward and backward by hand, without autograd's overhead."""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor, nn


class LinearByHand:
    """Computes what the layer computes, and writes its gradients into the layer's own `.grad`.

    Make it after the layer's parameters were laid into `FlatParameters`.
    """

    def __init__(self, layer: nn.Linear) -> None:
        self._weight = layer.weight.data
        self._weight_transposed = self._weight.t()
        self._weight_gradient = gradient_of(layer.weight).numpy()
        self._product = torch.empty(layer.in_features, layer.out_features)
        self._product_transposed = self._product.numpy().T
        self._bias = None if layer.bias is None else layer.bias.data
        self._bias_gradient = None if layer.bias is None else gradient_of(layer.bias)

    def forward(self, rows: Tensor) -> Tensor:
        """X W^T + b, (batch, outputs)."""
        if self._bias is None:
            return torch.mm(rows, self._weight_transposed)
        return torch.addmm(self._bias, rows, self._weight_transposed)

    def backward(self, gradient: Tensor, rows: Tensor) -> None:
        """Set the gradients of weight, G^T X, and bias, from that of the outputs."""
        # As X^T G, turned round in the copy: G^T X takes several times as long where X has few columns.
        torch.mm(rows.t(), gradient, out=self._product)
        self._weight_gradient[...] = self._product_transposed
        if self._bias_gradient is not None:
            torch.sum(gradient, 0, out=self._bias_gradient)

    def backward_rows(self, gradient: Tensor) -> Tensor:
        """The gradient of the input, G W."""
        return torch.mm(gradient, self._weight)


def is_trainable_linear(module: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether `LinearByHand` may stand in for this module."""
    # Exactly that class: a subclass or a parametrised layer may compute something else.
    return type(module) is nn.Linear and all(p.requires_grad for p in module.parameters())


def gradient_of(parameter: Tensor) -> Tensor:
    """The tensor that holds this parameter's gradient; `FlatParameters` has given it one."""
    assert parameter.grad is not None
    return parameter.grad
