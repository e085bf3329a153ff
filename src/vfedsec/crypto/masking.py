"""Masks of Z_2^16 or Z_2^32 that two parties add and subtract, so that only the sum of their arrays is left.

Assumption: each side of a pair masks at most one array for each (key, nonce). The nonce is (slice, round), the key
belongs to one pair, one purpose and one pair of ephemeral keys; `MaskStream` refuses any round that does not lie
after the last one it masked, so neither a repeat nor a reordering can reuse a nonce.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.crypto.prg import TAG_BYTES, Keystream, fastest_keystream
from vfedsec.errors import LocalProtocolError

Words = NDArray[np.uint32] | NDArray[np.uint16]


def nonce_of(round_index: int, slice_index: int) -> bytes:
    """12 bytes that name one slice of one round."""
    return (slice_index << 64 | round_index).to_bytes(12)


class Scratch:
    """Where keystream is made before it is used; one a party, the same room for every use of one size."""

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, int], tuple[memoryview, NDArray[Any]]] = {}

    def room(self, dtype: np.dtype[Any], size: int) -> tuple[memoryview, NDArray[Any]]:
        """A buffer for `size` numbers of keystream with the tag behind them, and those numbers as an array."""
        room = self._rooms.get((dtype.char, size))
        if room is None:
            buffer = bytearray(size * dtype.itemsize + TAG_BYTES)
            room = self._rooms[dtype.char, size] = (memoryview(buffer), np.frombuffer(buffer, dtype, size))
        return room


class MaskStream:
    """The masks of one pair for one purpose, as one of the two sides uses them."""

    def __init__(self, key: bytes, scratch: Scratch, keystream: type[Keystream] | None = None):
        self._stream = (keystream or fastest_keystream())(key)
        self._scratch = scratch
        self.last_round = -1

    def mask(self, words: Words, round_index: int, slice_index: int, *, add: bool) -> None:
        """Add (or subtract) this round's mask in place. Raises `LocalProtocolError` if that would reuse a nonce."""
        if round_index <= self.last_round:
            raise LocalProtocolError(
                f"cannot mask for round {round_index}: this key has masked round {self.last_round}"
            )
        self.last_round = round_index
        self.combine(words, round_index, slice_index, add=add)

    def combine(self, words: Words, round_index: int, slice_index: int, *, add: bool) -> None:
        """The same arithmetic without the promise: for taking off a mask that somebody put on."""
        if not words.flags.c_contiguous:  # a copy of them would be masked, and they themselves left bare
            raise LocalProtocolError("cannot mask words that do not lie in one row")
        room, stream = self._scratch.room(words.dtype, words.size)
        self._stream.fill(nonce_of(round_index, slice_index), room)
        flat = words.reshape(-1)
        if add:
            np.add(flat, stream, out=flat)
        else:
            np.subtract(flat, stream, out=flat)

    def __repr__(self) -> str:
        return f"MaskStream(last_round={self.last_round}, key=<redacted>)"
