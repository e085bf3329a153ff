"""The two keystreams."""

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.prg import TAG_BYTES, CtrKeystream, GcmKeystream, fastest_keystream

KEYS, NONCES = st.binary(min_size=32, max_size=32), st.binary(min_size=12, max_size=12)
BOTH = pytest.mark.parametrize("kind", [GcmKeystream, CtrKeystream])


def stream(kind, key, nonce, length):
    room = bytearray(b"\xaa" * (length + TAG_BYTES))
    kind(key).fill(nonce, bytes(length), memoryview(room))
    return bytes(room[:length])


def counter_mode_by_hand(key, nonce, length):
    """AES of the counter blocks 2, 3, …, one by one."""
    blocks = Cipher(AES(key), ECB()).encryptor()
    count = -(-length // 16)
    return b"".join(blocks.update(nonce + (2 + index).to_bytes(4)) for index in range(count))[:length]


@given(KEYS, NONCES, st.integers(0, 5000))
def test_gcm_and_ctr_give_the_same_bytes(key, nonce, length):
    assert stream(GcmKeystream, key, nonce, length) == stream(CtrKeystream, key, nonce, length)


@BOTH
@given(key=KEYS, nonce=NONCES, length=st.integers(0, 700))
def test_a_keystream_is_aes_of_counters(kind, key, nonce, length):
    assert stream(kind, key, nonce, length) == counter_mode_by_hand(key, nonce, length)


@BOTH
@given(st.integers(0, 300), st.integers(0, 300))
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(kind, first, second):
    short, long = sorted((first, second))
    key, nonce = bytes(range(32)), bytes(12)
    assert stream(kind, key, nonce, long).startswith(stream(kind, key, nonce, short))


@BOTH
def test_another_nonce_gives_another_stream(kind):
    streams = {stream(kind, bytes(32), number.to_bytes(12), 32) for number in range(100)}
    assert len(streams) == 100


@BOTH
def test_another_key_gives_another_stream(kind):
    streams = {stream(kind, number.to_bytes(32), bytes(12), 32) for number in range(100)}
    assert len(streams) == 100


@pytest.mark.parametrize(("slow", "expected"), [(0, CtrKeystream), (1, GcmKeystream)])
def test_the_race_is_won_by_the_faster_keystream(slow, expected):
    readings = iter([time for kind in (0, 1) for lap in range(12) for time in (0.0, 2.0 if kind == slow else 1.0)])
    assert fastest_keystream(lambda: next(readings)) is expected
