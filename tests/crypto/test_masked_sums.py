"""Sums whose parts nobody sees."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.masked_sums import WIDE_BYTES, Part, SumShape
from vfedsec.errors import RemoteProtocolError

FARTHEST = 1 << (8 * WIDE_BYTES - 8)
COUNTS = st.lists(st.integers(0, 1 << 50), min_size=3, max_size=3)
WIDE = st.lists(st.integers(-FARTHEST, FARTHEST), min_size=2, max_size=2)
SHAPE = SumShape(counts=3, wide=2)


def masked(parts):
    """Every party's part under the masks of its pairs."""
    keys = {pair: bytes([index]) * 32 for index, pair in enumerate(itertools.combinations(range(len(parts)), 2))}
    return [
        SHAPE.masked(part, [(key, place == pair[0]) for pair, key in keys.items() if place in pair])
        for place, part in enumerate(parts)
    ]


@given(st.lists(st.builds(Part, COUNTS, WIDE), min_size=1, max_size=6))
def test_the_sum_of_masked_parts_is_that_of_the_bare_ones(parts):
    total = SHAPE.total(masked(parts))
    assert total.counts == [sum(part.counts[i] for part in parts) for i in range(3)]
    assert total.wide == [sum(part.wide[i] for part in parts) for i in range(2)]


def test_a_masked_part_has_the_same_size_whatever_is_in_it():
    parts = [Part([0, 0, 0], [0, 0]), Part([1 << 50] * 3, [-FARTHEST, FARTHEST])]
    assert {len(one) for one in masked(parts)} == {SHAPE.size}


def test_a_masked_part_looks_like_noise():
    """Bytes of many masked zeros are uniform: chi-square over 256 values, far beyond what chance gives."""
    data = b"".join(SHAPE.masked(Part([0] * 3, [0] * 2), [(key.to_bytes(32), True)]) for key in range(400))
    found = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
    expected = len(data) / 256
    assert ((found - expected) ** 2 / expected).sum() < 255 + 6 * np.sqrt(2 * 255)


def test_every_number_has_a_mask_of_its_own():
    one = SHAPE.masked(Part([7] * 3, [7] * 2), [(bytes(32), True)])
    counts = {one[start : start + 8] for start in (0, 8, 16)}
    assert len(counts) == 3 and one[24 : 24 + WIDE_BYTES] != one[24 + WIDE_BYTES :]


@pytest.mark.parametrize("size", [0, SHAPE.size - 1, SHAPE.size + 1])
def test_a_part_of_another_length_is_refused(size):
    with pytest.raises(RemoteProtocolError, match=f"expected masked sums of {SHAPE.size} bytes"):
        SHAPE.total([bytes(SHAPE.size), bytes(size)])


def test_no_numbers_make_an_empty_part():
    empty = SumShape(0, 0)
    assert empty.masked(Part([], []), [(bytes(32), True)]) == b""
    assert empty.total([b"", b""]) == Part([], [])
