"""Sums without rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.data.exact import UNIT_BITS, exact_sums

NUMBERS = st.lists(st.floats(-1e100, 1e100), max_size=40)


def as_fractions(values):
    numbers = [Fraction(value) for value in values]
    return sum(numbers), sum(number * number for number in numbers)


@given(NUMBERS)
def test_sums_are_those_of_fractions(values):
    total, squares = exact_sums(np.array(values, dtype=np.float64))
    assert (Fraction(total, 1 << UNIT_BITS), Fraction(squares, 1 << 2 * UNIT_BITS)) == as_fractions(values)


@pytest.mark.parametrize(
    "values",
    [
        [5e-324, -5e-324, 5e-324],
        [3e-310, 2.2250738585072014e-308, -1.0],
        [1e100, 1.0, -1e100],
        [np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)],
        [-0.0, 0.0],
    ],
)
def test_the_smallest_and_largest_numbers_count_in_full(values):
    total, squares = exact_sums(np.array(values))
    assert (Fraction(total, 1 << UNIT_BITS), Fraction(squares, 1 << 2 * UNIT_BITS)) == as_fractions(values)


def test_more_rows_than_are_added_at_once_count_too():
    values = np.full(100_001, 1 - 2.0**-53)  # every limb of the mantissa is as large as it can be
    total, squares = exact_sums(values)
    one = Fraction(1 - 2.0**-53)
    assert Fraction(total, 1 << UNIT_BITS) == 100_001 * one
    assert Fraction(squares, 1 << 2 * UNIT_BITS) == 100_001 * one * one
