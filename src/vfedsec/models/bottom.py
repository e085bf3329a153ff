"""A party's part of the network, bound to the party's encoded table."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from vfedsec.config.job import ModelSpec, Training
from vfedsec.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from vfedsec.models.arrays import Landing
from vfedsec.models.flat import FlatParameters
from vfedsec.models.optimizers import Optimizer, build_optimizer
from vfedsec.models.passes import choose_pass
from vfedsec.models.registry import build_module
from vfedsec.models.state import dump_tensors, load_tensors
from vfedsec.protocol.interfaces import ABSENT_ROW, Floats, Rows


class TorchBottom:
    """A `BottomModel` on a torch module. `optimizer` makes one for a number of parameters.

    The module sees only rows that the party holds: neither its statistics nor its gradient know of
    the others.
    """

    def __init__(
        self,
        module: nn.Module,
        features: Tensor | Floats,
        width: int,
        optimizer: Callable[[int], Optimizer],
    ) -> None:
        self._table = _with_zero_row(features).numpy()
        self._rows = len(self._table) - 1
        self._width = width
        self._flat = FlatParameters(module)
        self._gradient = self._flat.gradient.numpy()
        self._pass = choose_pass(module, self._flat)
        self._optimizer = optimizer(self._flat.size)
        self._kept: tuple[int, Rows | None] | None = None
        # Between a training forward and its backward there is no other forward, so one place each is enough.
        self._batch, self._gradients = Landing(), Landing()

    @property
    def width(self) -> int:
        """Columns of its embedding."""
        return self._width

    @property
    def size(self) -> int:
        """How many trainable parameters it has."""
        return self._flat.size

    def forward(self, rows: Rows, *, training: bool) -> Floats:
        """The embedding of these rows, (batch, width); exact zeros where a row is `ABSENT_ROW`.

        Raises:
            RemoteProtocolError: There is no such row.
        """
        self.forget()
        held = self._held(rows)
        if training:
            self._kept = len(rows), held
        if held is None:
            return self._pass.forward(self._gather(rows), training=training)
        embedding = np.zeros((len(rows), self._width), dtype=np.float32)
        if len(held):
            embedding[held] = self._pass.forward(self._gather(rows[held]), training=training)
        return embedding

    def backward(self, gradient: Floats) -> Floats:
        """The flat gradient (size,) of the parameters, from that of the embedding (batch, width).

        Raises:
            LocalProtocolError: No training forward came before.
            RemoteProtocolError: The gradient has another shape than the embedding.
        """
        if self._kept is None:
            raise LocalProtocolError("a bottom model has no training forward to go back through")
        count, held = self._kept
        if gradient.shape != (count, self._width):
            raise RemoteProtocolError(
                f"the gradient of an embedding has shape {gradient.shape}, expected {(count, self._width)}"
            )
        if held is not None:
            gradient = gradient[held]
        if len(gradient):
            self._pass.backward(self._gradients.take(gradient))
        else:
            self._flat.zero_gradient()
        self.forget()
        return self._gradient.copy()

    def forget(self) -> None:
        """Drop what was kept for `backward`."""
        self._kept = None
        self._pass.forget()

    def apply(self, gradient: Floats) -> None:
        """One optimizer step with this flat gradient (size,), in memory that may be written to."""
        if gradient.shape != (self.size,):
            raise LocalProtocolError(f"a parameter gradient has shape {gradient.shape}, expected {(self.size,)}")
        self._optimizer.step(self._flat.values, torch.from_numpy(gradient))

    def dump(self) -> bytes:
        """Parameters, buffers and optimizer state."""
        return dump_tensors(self._state())

    def load(self, state: bytes) -> None:
        """Take a state that `dump` gave. Raises `RemoteProtocolError` when it does not fit."""
        load_tensors(state, self._state())
        self.forget()

    def _state(self) -> dict[str, Tensor]:
        return self._flat.state() | self._optimizer.state()

    def _held(self, rows: Rows) -> Rows | None:
        """Positions of the rows to go through the network; None stands for all of them.

        Where the network takes zeros to zeros, absent rows go through it as the zero row of the table: that is
        cheaper than leaving them out.
        """
        lowest, highest = np.minimum.reduce(rows), np.maximum.reduce(rows)
        if lowest < ABSENT_ROW or highest >= self._rows:
            row = highest if highest >= self._rows else lowest
            raise RemoteProtocolError(f"a batch names row {row} of a table with {self._rows} rows")
        if lowest != ABSENT_ROW or self._pass.keeps_zeros:
            return None
        return np.flatnonzero(rows != ABSENT_ROW).astype(np.int32)

    def _gather(self, rows: Rows) -> Tensor:
        # `wrap` makes -1, which is `ABSENT_ROW`, the last row of the table: the zero row.
        gathered, place = self._batch.room((len(rows), *self._table.shape[1:]))
        self._table.take(rows, 0, place, "wrap")
        return gathered


def build_bottom(
    features: Tensor | Floats,
    width: int,
    spec: ModelSpec,
    seed: bytes,
    training: Training,
    replicated: bool,
    allowed_packages: Collection[str] = (),
) -> TorchBottom:
    """The bottom model that a job asks for, on this table. `replicated`: the group has several.

    Raises:
        ConfigError: The network cannot be built, or cannot be replicated: buffers such as running
            statistics follow each party's own rows, so replicas would drift apart.
    """
    module = build_module(spec, features.shape[1], width, seed, allowed_packages)
    buffers = [name for name, _ in module.named_buffers()]
    if replicated and buffers:
        raise ConfigError(
            f"network {spec.name!r} keeps statistics of its own ({', '.join(buffers)}), so the "
            "replicas of a group of several parties could not stay identical"
        )
    return TorchBottom(module, features, width, partial(build_optimizer, training))


def _with_zero_row(features: Tensor | Floats) -> Tensor:
    """The table as a float32 tensor, with a row of zeros behind its last one."""
    table = features if isinstance(features, Tensor) else torch.from_numpy(np.array(features, np.float32))
    return torch.cat([table.to(torch.float32), torch.zeros(1, *table.shape[1:])])
