"""The bottom model of an active party that has no columns: it adds nothing to the embedding."""

from __future__ import annotations

import numpy as np

from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.interfaces import Floats, Rows


class EmptyBottom:
    """A `BottomModel` without parameters whose embedding is zero."""

    def __init__(self, width: int) -> None:
        self._width = width

    @property
    def width(self) -> int:
        """Columns of its embedding."""
        return self._width

    @property
    def size(self) -> int:
        """It has no parameters."""
        return 0

    def forward(self, rows: Rows, *, training: bool) -> Floats:
        """Zeros, (batch, width)."""
        return np.zeros((len(rows), self._width), dtype=np.float32)

    def backward(self, gradient: Floats) -> Floats:
        """The gradient (0,) of no parameters."""
        return np.zeros(0, dtype=np.float32)

    def forget(self) -> None:
        """Nothing was kept."""

    def apply(self, gradient: Floats) -> None:
        """Nothing can move."""

    def dump(self) -> bytes:
        """The empty state."""
        return b""

    def load(self, state: bytes) -> None:
        """Take the empty state. Raises `RemoteProtocolError` for any other."""
        if state:
            raise RemoteProtocolError(f"a model without parameters has a state of 0 bytes, got {len(state)}")
