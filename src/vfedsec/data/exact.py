"""Sums of numbers without any rounding, so that they are the same however rows are ordered or shared out.

A float is a whole number of 2**-1074, its square one of 2**-2148; sums of both are kept as such whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

UNIT_BITS = 1074
"""Sums are in units of 2**-UNIT_BITS, sums of squares of 2**(-2 * UNIT_BITS)."""

_MANTISSA_BITS = 53
_LIMB_BITS = 18
_LIMB = (1 << _LIMB_BITS) - 1
# 2**38 a term and 2**15 terms: what is added up in floats stays below 2**53, and so exact.
_ROWS_AT_ONCE = 1 << 15


def exact_sums(values: NDArray[np.float64]) -> tuple[int, int]:
    """The sum and the sum of squares of finite numbers, in the units above."""
    total = squares = 0
    for start in range(0, len(values), _ROWS_AT_ONCE):
        mantissas, exponents = _taken_apart(values[start : start + _ROWS_AT_ONCE])
        low, middle, high = _limbs(np.abs(mantissas))
        signs = np.sign(mantissas)
        total += _combined(exponents, [signs * low, signs * middle, signs * high], 1)
        products = [low * low, 2 * low * middle, 2 * low * high + middle * middle, 2 * middle * high, high * high]
        squares += _combined(exponents, products, 2)
    return total, squares


def _taken_apart(values: NDArray[np.float64]) -> tuple[Integers, Integers]:
    """Whole numbers and powers of two: a value is its mantissa times 2**exponent."""
    fractions, exponents = np.frexp(values)
    return np.ldexp(fractions, _MANTISSA_BITS).astype(np.int64), exponents.astype(np.int64) - _MANTISSA_BITS


def _limbs(magnitudes: Integers) -> tuple[Integers, Integers, Integers]:
    return magnitudes & _LIMB, (magnitudes >> _LIMB_BITS) & _LIMB, magnitudes >> (2 * _LIMB_BITS)


def _combined(exponents: Integers, limbs: Sequence[Integers], power: int) -> int:
    """The sum over rows of sum(limb[k] * 2**(18 k)) * 2**(power * exponent), in units of 2**(-power * UNIT_BITS)."""
    if not len(exponents):
        return 0
    result, lowest = 0, int(exponents.min())
    for place, limb in enumerate(limbs):
        for offset, part in _by_exponent(exponents - lowest, limb):
            shift = place * _LIMB_BITS + power * (offset + lowest + UNIT_BITS)
            result += part << (shift + _SPARE)
    return result >> _SPARE


# The smallest numbers have mantissas that end in zeros and exponents below the unit.
_SPARE = 2 * _MANTISSA_BITS


def _by_exponent(offsets: Integers, limb: Integers) -> Iterator[tuple[int, int]]:
    sums = np.bincount(offsets, weights=limb)
    for offset in np.flatnonzero(sums).tolist():
        yield offset, int(sums[offset])
