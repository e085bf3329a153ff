"""From numpy arrays of the protocol to torch tensors."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def aligned_tensor(array: NDArray[np.float32]) -> Tensor:
    """A contiguous float32 copy of the array, in memory that torch aligned.

    A matrix product may round differently when its operands start elsewhere in a cache line. Arrays
    cut out of messages start anywhere; copied, they give the same bits in every engine.
    """
    tensor = torch.empty(array.shape)
    tensor.numpy()[...] = array
    return tensor
