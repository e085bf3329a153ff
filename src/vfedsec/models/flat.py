"""All trainable parameters of a module as one vector, and their gradients as another.

The parameters and their `.grad` become views: a backward pass accumulates into the vector in place,
one call zeroes it, an optimizer steps on one tensor, and a group's update is masked as one array.
Whoever holds the module must not replace its parameters or set their `.grad` to None.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vfedsec.errors import ConfigError


class FlatParameters:
    """The trainable parameters of a module, in the module's own order, float32 on the CPU."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        trainable = {n: p for n, p in module.named_parameters() if p.requires_grad}
        for name, parameter in trainable.items():
            _check_storable(name, parameter)
        parameters = list(trainable.values())
        #: The parameters, (size,).
        self.values = torch.cat([torch.empty(0), *(p.detach().reshape(-1) for p in parameters)])
        #: Their gradient, (size,).
        self.gradient = torch.zeros_like(self.values)
        #: How many numbers the parameters are.
        self.size = self.values.numel()
        sizes = [p.numel() for p in parameters]
        values, gradients = torch.split(self.values, sizes), torch.split(self.gradient, sizes)
        for parameter, value, gradient in zip(parameters, values, gradients, strict=True):
            parameter.data = value.view(parameter.shape)
            parameter.grad = gradient.view(parameter.shape)

    @property
    def buffers(self) -> dict[str, Tensor]:
        """What the module remembers beside its parameters, such as running statistics."""
        return dict(self._module.named_buffers())

    def zero_gradient(self) -> None:
        """Set every gradient to zero."""
        self.gradient.zero_()

    def state(self) -> dict[str, Tensor]:
        """All that the module's numbers are: parameters and buffers by name."""
        parameters = {f"parameter.{n}": p.data for n, p in self._module.named_parameters()}
        return parameters | {f"buffer.{n}": b for n, b in self.buffers.items()}


def _check_storable(name: str, parameter: nn.Parameter) -> None:
    if nn.parameter.is_lazy(parameter):
        raise ConfigError(f"parameter {name!r} has no shape yet; lazy modules cannot be trained")
    if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
        raise ConfigError(
            f"parameter {name!r} is {parameter.dtype} on {parameter.device}, expected torch.float32 on cpu"
        )
