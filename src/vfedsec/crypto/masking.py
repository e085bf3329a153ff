"""Masks of Z_2^16 or Z_2^32 that two parties add and subtract, so that only the sum of their arrays is left.

Assumption: each side of a pair masks at most one array for each (key, nonce). The nonce is (slice, round), the key
belongs to one pair, one purpose and one pair of ephemeral keys; `MaskStream` refuses any round that does not lie
after the last one it masked, so neither a repeat nor a reordering can reuse a nonce.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vfedsec.crypto.prg import TAG_BYTES, Keystream, fastest_keystream
from vfedsec.errors import LocalProtocolError

Words = NDArray[np.uint32] | NDArray[np.uint16]


def nonce_of(round_index: int, slice_index: int) -> bytes:
    """12 bytes that name one slice of one round."""
    return (slice_index << 64 | round_index).to_bytes(12)


class Room(NamedTuple):
    """Where the keystream for arrays of one shape is made."""

    zeros: bytes
    buffer: memoryview
    """For the keystream, with room for a tag behind it."""
    numbers: NDArray[Any]
    """The keystream in it, in the array's shape."""


class Scratch:
    """Where keystream is made before it is used; one a party, the same room for every use of one shape."""

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, tuple[int, ...]], Room] = {}

    def room(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Room:
        """The room for keystream over an array of this type and shape."""
        room = self._rooms.get((dtype.char, shape))
        if room is None:
            size = math.prod(shape)
            buffer = bytearray(size * dtype.itemsize + TAG_BYTES)
            numbers = np.frombuffer(buffer, dtype, size).reshape(shape)
            room = Room(bytes(size * dtype.itemsize), memoryview(buffer), numbers)
            self._rooms[dtype.char, shape] = room
        return room


class MaskStream:
    """The masks of one pair for one purpose, as one of the two sides uses them."""

    def __init__(self, key: bytes, scratch: Scratch, keystream: type[Keystream] | None = None):
        self._fill = (keystream or fastest_keystream())(key).fill
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
        zeros, buffer, numbers = self._scratch.room(words.dtype, words.shape)
        self._fill(nonce_of(round_index, slice_index), zeros, buffer)
        if add:
            np.add(words, numbers, words)
        else:
            np.subtract(words, numbers, words)

    def __repr__(self) -> str:
        return f"MaskStream(last_round={self.last_round}, key=<redacted>)"
