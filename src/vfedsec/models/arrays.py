"""From numpy arrays of the protocol to torch tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from vfedsec.protocol.interfaces import Floats


def aligned_tensor(array: Floats) -> Tensor:
    """A contiguous float32 copy of the array, in memory that torch aligned.

    A matrix product may round differently when its operands start elsewhere in a cache line. Arrays
    cut out of messages start anywhere; copied, they give the same bits in every engine.
    """
    return Landing().take(array)


class Landing:
    """Where one array after the other is copied to as by `aligned_tensor`: while the shape stays, to the same place."""

    def __init__(self) -> None:
        self._shape: tuple[int, ...] | None = None

    def room(self, shape: tuple[int, ...]) -> tuple[Tensor, Floats]:
        """The place for an array of this shape, as a tensor and as an array; what stands there may be overwritten."""
        if shape != self._shape:
            self._shape = shape
            self._tensor = torch.empty(shape)
            self._array: Floats = self._tensor.numpy()
        return self._tensor, self._array

    def take(self, array: Floats) -> Tensor:
        """The copy; the next one may take its place."""
        tensor, place = self.room(array.shape)
        place[...] = array
        return tensor
