"""Sums of whole numbers that nobody sees the parts of: every part is masked once, and only the sum of all is bare.

Each pair of parties has a key that serves this one sum. The stream of it is added by the one and subtracted by the
other, modulo 2**64 for counts and modulo 2**(8 * WIDE_BYTES) for wide numbers, so that a masked part is uniform
whatever is in it, and the masks are gone in the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vfedsec.crypto.prg import NONCE_BYTES, TAG_BYTES, fastest_keystream
from vfedsec.errors import RemoteProtocolError

WIDE_BYTES = 368
"""What a sum of squares of numbers up to 1e100, in units of 2**-2148 and over 2**48 rows, takes with its sign."""

COUNT_BYTES = 8

_WIDE = 1 << (8 * WIDE_BYTES)


@dataclass(frozen=True)
class Part:
    """What one party adds."""

    counts: list[int]
    """Not negative, and below 2**63 in the sum."""
    wide: list[int]


@dataclass(frozen=True)
class SumShape:
    """How many numbers are summed."""

    counts: int
    wide: int

    @property
    def size(self) -> int:
        """Bytes of a masked part."""
        return COUNT_BYTES * self.counts + WIDE_BYTES * self.wide

    def masked(self, part: Part, keys: Iterable[tuple[bytes, bool]]) -> bytes:
        """The part under the mask of every pair: its key, used for nothing else, and whether this side adds."""
        counts, wide = np.array(part.counts, dtype="<u8"), list(part.wide)
        for key, adds in keys:
            mask_counts, mask_wide = self._split(self._stream(key))
            counts = counts + mask_counts if adds else counts - mask_counts
            wide = [(a + m if adds else a - m) % _WIDE for a, m in zip(wide, mask_wide, strict=True)]
        return counts.tobytes() + b"".join((one % _WIDE).to_bytes(WIDE_BYTES, "little") for one in wide)

    def total(self, masked: Sequence[bytes]) -> Part:
        """The sum of all parts. Raises `RemoteProtocolError` when one is of another length."""
        if any(len(one) != self.size for one in masked):
            raise RemoteProtocolError(f"expected masked sums of {self.size} bytes")
        counts, wide = np.zeros(self.counts, dtype="<u8"), [0] * self.wide
        for one in masked:
            more, more_wide = self._split(one)
            counts = counts + more
            wide = [(a + b) % _WIDE for a, b in zip(wide, more_wide, strict=True)]
        return Part(counts.tolist(), [one - _WIDE if one >= _WIDE // 2 else one for one in wide])

    def _split(self, data: bytes) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], list[int]]:
        counts = np.frombuffer(data, "<u8", self.counts)
        starts = range(COUNT_BYTES * self.counts, self.size, WIDE_BYTES)
        return counts, [int.from_bytes(data[start : start + WIDE_BYTES], "little") for start in starts]

    def _stream(self, key: bytes) -> bytes:
        buffer = bytearray(self.size + TAG_BYTES)
        fastest_keystream()(key).fill(bytes(NONCE_BYTES), bytes(self.size), memoryview(buffer))
        return bytes(buffer[: self.size])
