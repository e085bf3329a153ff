"""Which elements of two lists are equal, in a few tens of bytes an element.

Of each element 128 bits are kept. They are as good as random, since a secret exponent made them: that two different
elements of two lists of a billion agree in them has a chance below 2^-60.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vfedsec.data.curve import ELEMENT_BYTES
from vfedsec.protocol.interfaces import ABSENT_ROW, Rows

_KEPT = slice(1, 17)
"""The first byte of an element holds one bit only."""
_KEPT_TYPE = "S16"  # numpy sorts and searches these byte by byte


class Elements:
    """A list of elements that grows piece by piece."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def __len__(self) -> int:
        return len(self._kept) // 16

    def add(self, elements: bytes) -> None:
        """Append these elements, which stand one behind the other."""
        self._kept += np.frombuffer(elements, np.uint8).reshape(-1, ELEMENT_BYTES)[:, _KEPT].tobytes()

    def are_different(self) -> bool:
        """Whether no element stands here twice."""
        return _are_different(np.sort(self.array()))

    def array(self) -> NDArray[np.bytes_]:
        """What is kept of each."""
        return np.frombuffer(self._kept, _KEPT_TYPE)


def places(wanted: Elements, given: Elements) -> Rows:
    """For each wanted element its place among those given, or `ABSENT_ROW`. Raises `ValueError` when one is given
    twice."""
    order = np.argsort(given.array(), kind="stable").astype(np.int32)
    in_order = given.array()[order]
    if not _are_different(in_order):
        raise ValueError("expected each element once")
    if not len(given):
        return np.full(len(wanted), ABSENT_ROW, np.int32)
    at = np.searchsorted(in_order, wanted.array()).astype(np.int32)
    at[at == len(given)] = 0  # beyond the last: not equal to the first either
    return np.where(in_order[at] == wanted.array(), order[at], np.int32(ABSENT_ROW))


def _are_different(in_order: NDArray[np.bytes_]) -> bool:
    return not bool(np.any(in_order[1:] == in_order[:-1]))
