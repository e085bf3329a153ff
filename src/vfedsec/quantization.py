"""Signed fixed point in a ring of 16- or 32-bit words, and the proof that sums stay inside it.

A value x becomes the stochastically rounded integer x * R / (2t) after clipping to [-t, t]; the paper's q(x) is this
integer shifted by R/2, its q^-1 the same map back. Sums wrap around modulo 2^16 or 2^32, and read as signed numbers
they are exact as long as `contributors * R / 2` stays below half the ring, which `plan` proves before anything is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.job import Job
from vfedsec.crypto.prg import NONCE_BYTES, TAG_BYTES, Keystream
from vfedsec.errors import DataError, QuantizationOverflow

DEFAULT_RANGE_BITS = 27
UPDATE_WORD_BITS = 32
_MOST_FRACTION_BITS = 16
_WINDOWS = 1 << 14
_GOLDEN_STEP = 10_127  # of so many windows; odd, so that each has its turn
_SLICE_STEP = 6_899


@dataclass(frozen=True)
class FixedPoint:
    """A number format: [-clip, clip] spread over 2**range_bits integers, kept in words of word_bits."""

    clip: float
    range_bits: int
    word_bits: int

    @cached_property
    def words(self) -> np.dtype[Any]:
        """The type that travels."""
        return np.dtype(f"<u{self.word_bits // 8}")

    @cached_property
    def signed(self) -> np.dtype[Any]:
        """The same bits read as signed integers."""
        return np.dtype(f"<i{self.word_bits // 8}")

    @cached_property
    def limit(self) -> np.float32:
        """The largest integer a single value can become."""
        return np.float32(2 ** (self.range_bits - 1))

    @cached_property
    def scale(self) -> np.float32:
        """Integers per unit."""
        return np.float32(2**self.range_bits / (2 * self.clip))

    @cached_property
    def fraction_bits(self) -> int:
        """Binary digits behind the point that decide the rounding: as many as a 32-bit integer has left."""
        return min(_MOST_FRACTION_BITS, 31 - self.range_bits)

    @cached_property
    def _fine_scale(self) -> np.float32:
        return self.scale * np.float32(2**self.fraction_bits)

    @cached_property
    def _fine_limit(self) -> np.float32:
        return self.limit * np.float32(2**self.fraction_bits)

    @cached_property
    def _surely_fits(self) -> np.float32:
        """A value whose product with the scale is within the limit, however products round; next to `clip`."""
        most = np.float32(self.clip)
        while most * self._fine_scale > self._fine_limit:
            most = np.nextafter(most, np.float32(0))
        return most

    @cached_property
    def _shift(self) -> np.int32:
        return np.int32(self.fraction_bits)

    @cached_property
    def _unit(self) -> np.float32:
        return np.float32(1) / self.scale

    def encode(self, values: NDArray[np.float32], noise: NDArray[np.int32]) -> tuple[NDArray[Any], int]:
        """Words, and how many values had to be clipped. `noise` is uniform from 0 to 2**fraction_bits - 1, one number
        a value.

        Raises `DataError` for a value that is not a number.
        """
        flat = np.ascontiguousarray(values).reshape(-1)
        if self._fits(flat):
            fine, clipped = np.multiply(flat, self._fine_scale), 0
        else:
            fine, clipped = self._clip(flat)
        integers = fine.astype(np.int32)
        np.add(integers, noise, integers)
        np.right_shift(integers, self._shift, integers)  # up with the probability of the fraction, else down
        if self.word_bits < 32:
            integers = integers.astype(self.signed)
        return integers.view(self.words).reshape(values.shape), clipped

    def _fits(self, values: NDArray[np.float32]) -> bool:
        """Whether none of them needs clipping; nearly always so, and cheap to say."""
        most = self._surely_fits
        return values.size == 0 or bool(np.minimum.reduce(values) >= -most and np.maximum.reduce(values) <= most)

    def _clip(self, values: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
        if not np.isfinite(values).all():
            raise DataError("an embedding or gradient is not finite: lower training.learning_rate or scale the inputs")
        limit = self._fine_limit
        with np.errstate(over="ignore"):
            fine = np.multiply(values, self._fine_scale)
        clipped = int(np.count_nonzero(np.abs(fine) > limit))
        return np.clip(fine, -limit, limit, out=fine), clipped

    def decode(self, words: NDArray[Any]) -> NDArray[np.float32]:
        """The values that words (or their wrapped sum) stand for."""
        values: NDArray[np.float32] = words.view(self.signed).astype(np.float32)
        values *= self._unit
        return values


class RoundingNoise:
    """Noise for `FixedPoint.encode`: windows of one table of random numbers, another window every round.

    Rounding wants numbers that are uniform and know nothing of the values, no secrets; so the table is drawn once, and
    not a stream a round. Round after round goes on by the golden ratio, which keeps windows of near rounds apart.
    """

    def __init__(self, stream: Keystream, fraction_bits: int) -> None:
        """Equal streams give equal noise."""
        self._stream = stream
        self._bits = fraction_bits
        self._table = np.empty(0, np.int32)

    def window(self, round_index: int, slice_index: int, size: int) -> NDArray[np.int32]:
        """The noise of so many values of one slice of one round; not to be written to."""
        if len(self._table) < _WINDOWS + size:
            self._table = self._draw(_WINDOWS + size)
        start = (round_index * _GOLDEN_STEP + slice_index * _SLICE_STEP) % _WINDOWS
        return self._table[start : start + size]

    def _draw(self, size: int) -> NDArray[np.int32]:
        buffer = bytearray(4 * size + TAG_BYTES)
        self._stream.fill(bytes(NONCE_BYTES), bytes(4 * size), memoryview(buffer))
        words = np.frombuffer(buffer, "<u4", size)
        table: NDArray[np.int32] = np.bitwise_and(words, np.uint32(2**self._bits - 1)).astype(np.int32)
        table.flags.writeable = False
        return table


@dataclass(frozen=True)
class NumberPlan:
    """The formats of a job, proven not to overflow."""

    embedding: FixedPoint
    update: FixedPoint


def plan(job: Job) -> NumberPlan:
    """The formats of a job. Raises `QuantizationOverflow` if a sum of its contributors could leave the ring."""
    security = job.security
    sharing = _most_sharing(job)
    bits = security.range_bits
    if bits is None:
        bits = DEFAULT_RANGE_BITS if security.word_bits == 32 else most_bits(16, sharing)
    embedding = FixedPoint(security.clip, bits, security.word_bits)
    _prove(embedding, sharing, "an embedding slice")
    members = max((len(group.parties) for group in job.groups), default=1)
    update_bits = min(DEFAULT_RANGE_BITS, most_bits(UPDATE_WORD_BITS, members))
    return NumberPlan(embedding, FixedPoint(security.update_clip, update_bits, UPDATE_WORD_BITS))


def most_bits(word_bits: int, contributors: int) -> int:
    """The largest range_bits whose sums cannot overflow."""
    return word_bits - contributors.bit_length()


def _most_sharing(job: Job) -> int:
    """How many parties add to the busiest slice, the active one included."""
    if job.fusion.kind == "sum":
        return 1 + len(job.passive_parties)
    return 1 + max((len(group.parties) for group in job.groups), default=0)


def _prove(numbers: FixedPoint, contributors: int, what: str) -> None:
    largest = contributors * 2 ** (numbers.range_bits - 1)
    half = 2 ** (numbers.word_bits - 1)
    if largest >= half:
        allowed = most_bits(numbers.word_bits, contributors)
        raise QuantizationOverflow(
            f"expected at most {allowed}, found {numbers.range_bits}: {contributors} parties "
            f"add to {what}, their sum can reach {largest}, and {numbers.word_bits}-bit words hold less than {half}"
            + ("" if numbers.word_bits == 32 else "; or set security.word_bits = 32"),
            key="security.range_bits",
        )
