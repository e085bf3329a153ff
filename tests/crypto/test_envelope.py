"""Sealed messages from party to party."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.envelope import Seal
from vfedsec.errors import LocalProtocolError, OpenFailed

KEY = bytes(range(32))
NUMBERS = st.integers(0, 2**63)


def ends(key=KEY, sender="p", receiver="q", purpose="envelope"):
    return Seal(key, sender, receiver, purpose), Seal(key, sender, receiver, purpose)


@given(st.binary(max_size=200), NUMBERS)
def test_open_gives_what_seal_took(plaintext, number):
    sealing, opening = ends()
    assert opening.open(number, sealing.seal(number, plaintext)) == plaintext


@given(st.binary(max_size=60), st.data())
def test_any_flipped_bit_is_an_error(plaintext, data):
    sealing, opening = ends()
    sealed = sealing.seal(7, plaintext)
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    forged = bytearray(sealed)
    forged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(OpenFailed):
        opening.open(7, bytes(forged))
    assert opening.open(7, sealed) == plaintext


@given(st.binary(max_size=60), st.data())
def test_a_cut_or_longer_message_is_an_error(plaintext, data):
    sealing, opening = ends()
    sealed = sealing.seal(7, plaintext)
    cut = sealed[: data.draw(st.integers(0, len(sealed) - 1))]
    for forged in (cut, sealed + b"\0", b"\0" + sealed):
        with pytest.raises(OpenFailed):
            opening.open(7, forged)


@given(NUMBERS, NUMBERS)
def test_a_message_opens_under_its_own_number_only(number, other):
    if number != other:
        sealing, opening = ends()
        with pytest.raises(OpenFailed):
            opening.open(other, sealing.seal(number, b"rows"))


@pytest.mark.parametrize("number", [-1, -(2**70), 2**96, 2**200])
def test_a_number_that_is_none_is_an_error(number):
    with pytest.raises(OpenFailed):
        ends()[1].open(number, bytes(40))


def test_a_message_opens_once():
    sealing, opening = ends()
    sealed = sealing.seal(7, b"rows")
    opening.open(7, sealed)
    with pytest.raises(OpenFailed):
        opening.open(7, sealed)


def test_an_older_message_does_not_open_after_a_newer_one():
    sealing, opening = ends()
    older, newer = sealing.seal(1, b"one"), sealing.seal(2, b"two")
    opening.open(2, newer)
    with pytest.raises(OpenFailed):
        opening.open(1, older)


def test_a_forgery_does_not_use_up_a_number():
    sealing, opening = ends()
    sealed = sealing.seal(7, b"rows")
    with pytest.raises(OpenFailed):
        opening.open(900, bytes(40))
    assert opening.open(7, sealed) == b"rows"


@given(st.lists(st.integers(0, 20), min_size=2, max_size=9))
def test_nothing_is_sealed_under_a_number_that_does_not_grow(numbers):
    sealing, _ = ends()
    highest = -1
    for number in numbers:
        if number > highest:
            sealing.seal(number, b"rows")
            highest = number
        else:
            with pytest.raises(LocalProtocolError, match=f"cannot seal number {number} after {highest}"):
                sealing.seal(number, b"rows")


@pytest.mark.parametrize(
    "change",
    [{"sender": "r"}, {"receiver": "r"}, {"purpose": "group"}, {"key": bytes(32)}],
    ids=lambda c: next(iter(c)),
)
def test_sender_receiver_purpose_and_key_are_bound(change):
    sealed = ends()[0].seal(1, b"rows")
    with pytest.raises(OpenFailed):
        ends(**change)[1].open(1, sealed)


def test_every_failure_reads_the_same():
    sealing, opening = ends()
    sealed = sealing.seal(7, b"rows")
    messages = set()
    for number, forged in ((7, b""), (8, sealed), (-1, sealed), (7, sealed[:-1])):
        with pytest.raises(OpenFailed) as caught:
            opening.open(number, forged)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_messages_of_one_length_are_sealed_to_one_length():
    lengths = {len(ends()[0].seal(1, bytes([value]) * 64)) for value in range(256)}
    assert lengths == {64 + 16}
