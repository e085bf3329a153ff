"""Masks that cancel in sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.masking import MaskStream, Scratch, nonce_of
from vfedsec.errors import LocalProtocolError

KEY = bytes(range(32))
RINGS = st.sampled_from([np.uint16, np.uint32])
ROUNDS = st.integers(0, 2**63)


def stream(key=KEY, scratch=None):
    return MaskStream(key, scratch or Scratch())


def words_of(seed, ring, shape=(5, 3)):
    return np.random.default_rng(seed).integers(0, np.iinfo(ring).max, shape, dtype=ring, endpoint=True)


@given(st.integers(0, 99), RINGS, ROUNDS, st.integers(0, 9))
def test_adding_and_subtracting_a_mask_leaves_the_words(seed, ring, round_index, slice_index):
    words = words_of(seed, ring)
    before = words.copy()
    stream().mask(words, round_index, slice_index, add=True)
    assert not np.array_equal(words, before)
    stream().mask(words, round_index, slice_index, add=False)
    assert np.array_equal(words, before)


@given(RINGS, ROUNDS)
def test_a_mask_does_not_depend_on_the_words(ring, round_index):
    masks = []
    for seed in range(2):
        words = words_of(seed, ring)
        before = words.copy()
        stream().mask(words, round_index, 0, add=True)
        masks.append(words - before)
    assert np.array_equal(*masks)


def test_rounds_slices_and_keys_have_masks_of_their_own():
    masks = set()
    for key in (KEY, bytes(32)):
        for round_index in range(4):
            for slice_index in range(4):
                words = np.zeros(16, np.uint32)
                stream(key).mask(words, round_index, slice_index, add=True)
                masks.add(words.tobytes())
    assert len(masks) == 2 * 4 * 4


@given(st.lists(st.integers(0, 12), min_size=2, max_size=9))
def test_a_round_that_does_not_lie_after_the_last_is_refused(rounds):
    one, highest = stream(), -1
    for round_index in rounds:
        words = np.zeros(4, np.uint32)
        if round_index > highest:
            one.mask(words, round_index, 0, add=True)
            highest = round_index
        else:
            with pytest.raises(LocalProtocolError, match=f"round {round_index}: this key has masked round {highest}"):
                one.mask(words, round_index, 0, add=True)
            assert not words.any()


def test_a_round_is_masked_once_whatever_the_slice():
    one = stream()
    one.mask(np.zeros(4, np.uint32), 3, 0, add=True)
    with pytest.raises(LocalProtocolError):
        one.mask(np.zeros(4, np.uint32), 3, 1, add=True)


def test_taking_off_a_mask_uses_up_no_round():
    one = stream()
    one.combine(np.zeros(4, np.uint32), 3, 0, add=False)
    one.mask(np.zeros(4, np.uint32), 3, 0, add=True)


@pytest.mark.parametrize(
    "view", [lambda w: w.T, lambda w: w[:, :2], lambda w: w[::2]], ids=["turned", "cut", "strided"]
)
def test_words_that_do_not_lie_in_one_row_are_masked_where_they_are(view):
    """Were a copy of them masked, they themselves would stay bare."""
    whole = words_of(0, np.uint32, (6, 4))
    words, before = view(whole), whole.copy()
    mask = np.zeros(words.shape, np.uint32)
    stream().mask(mask, 1, 0, add=True)
    stream().mask(words, 1, 0, add=True)
    assert np.array_equal(view(whole), view(before) + mask)
    assert np.count_nonzero(whole != before) == words.size


@given(st.lists(st.integers(1, 400), min_size=1, max_size=6))
def test_a_shared_scratch_changes_no_mask(sizes):
    scratch = Scratch()
    for round_index, size in enumerate(sizes):
        shared, fresh = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
        stream(scratch=scratch).mask(shared, round_index, 0, add=True)
        stream().mask(fresh, round_index, 0, add=True)
        assert np.array_equal(shared, fresh)


@given(ROUNDS, st.integers(0, 2**32 - 1), ROUNDS, st.integers(0, 2**32 - 1))
def test_a_nonce_names_one_slice_of_one_round(round_index, slice_index, other_round, other_slice):
    same = (round_index, slice_index) == (other_round, other_slice)
    assert (nonce_of(round_index, slice_index) == nonce_of(other_round, other_slice)) == same
    assert len(nonce_of(round_index, slice_index)) == 12


def test_a_repr_shows_no_key():
    assert KEY.hex() not in repr(stream())
    assert "redacted" in repr(stream())
