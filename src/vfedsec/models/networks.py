"""The networks that a job may name without an import path.

Each is a function (inputs, outputs, options) with a struct of options. `inputs` is the number of
columns, or the shape of one row.
"""

from __future__ import annotations

import itertools
import math
from typing import Annotated

import msgspec
from torch import Tensor, nn

from vfedsec.errors import ConfigError

Inputs = int | tuple[int, ...]
Width = Annotated[int, msgspec.Meta(ge=1)]


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every network's options: closed to keys it does not know."""


class LinearOptions(NoOptions, frozen=True):
    """One affine map."""

    bias: bool = True
    """Whether it adds a constant."""


class MlpOptions(NoOptions, frozen=True):
    """Affine maps with ReLU between them."""

    hidden: tuple[Width, ...]
    """The widths of the hidden layers."""
    bias: bool = True
    """Whether the maps add constants."""


class CnnOptions(NoOptions, frozen=True):
    """Two convolutions, each with batch norm, ReLU and pooling, and an affine map. Not for groups of several parties,
    whose replicas could not share running statistics."""

    shape: tuple[Width, Width, Width] | None = None
    """Channels, height and width of an image. Needed where the rows of a table are its pixels."""


def linear(inputs: Inputs, outputs: int, options: LinearOptions) -> nn.Module:
    """One affine map."""
    return _on_flat(inputs, nn.Linear(_columns(inputs), outputs, options.bias))


def mlp(inputs: Inputs, outputs: int, options: MlpOptions) -> nn.Module:
    """Affine maps with ReLU between them."""
    widths = [_columns(inputs), *options.hidden]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after, options.bias), nn.ReLU()]
    return _on_flat(inputs, *layers, nn.Linear(widths[-1], outputs, options.bias))


def cnn(inputs: Inputs, outputs: int, options: CnnOptions) -> nn.Module:
    """The convolutional bottom model of the paper's appendix, for images and slices of images.

    A side that is a single pixel is not pooled further, so that slices may be thin.
    """
    shape = _image_shape(inputs, options)
    first, first_side = _pool(shape[1:])
    second, second_side = _pool(first_side)
    return nn.Sequential(
        _Image(shape),
        *(nn.Conv2d(shape[0], 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), first),
        *(nn.Conv2d(32, 64, 1), nn.BatchNorm2d(64), nn.ReLU(), second),
        nn.Flatten(),
        nn.Linear(64 * math.prod(second_side), outputs),
    )


class _Image(nn.Module):
    """Rows of any shape as images."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self._shape = shape

    def forward(self, rows: Tensor) -> Tensor:
        return rows.reshape(-1, *self._shape)


def _columns(inputs: Inputs) -> int:
    return inputs if isinstance(inputs, int) else math.prod(inputs)


def _on_flat(inputs: Inputs, *layers: nn.Module) -> nn.Module:
    if not isinstance(inputs, int):
        return nn.Sequential(nn.Flatten(), *layers)
    return layers[0] if len(layers) == 1 else nn.Sequential(*layers)


def _image_shape(inputs: Inputs, options: CnnOptions) -> tuple[int, int, int]:
    shape = options.shape or (() if isinstance(inputs, int) else inputs)
    if len(shape) != 3:
        raise ConfigError("network 'cnn' needs the option shape = [channels, height, width]")
    if math.prod(shape) != _columns(inputs):
        raise ConfigError(
            f"network 'cnn' has the option shape = {list(shape)}, {math.prod(shape)} numbers, "
            f"but its input has {_columns(inputs)} columns"
        )
    return shape


def _pool(sides: tuple[int, int]) -> tuple[nn.Module, tuple[int, int]]:
    """Max-pooling that halves the sides, and the sides it leaves."""
    kernel = (min(2, sides[0]), min(2, sides[1]))
    return nn.MaxPool2d(kernel), (sides[0] // kernel[0], sides[1] // kernel[1])
