"""Frames and channels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.keys import EphemeralKey, Identity, RunContext
from vfedsec.errors import CryptoError, OpenFailed, RemoteProtocolError
from vfedsec.protocol import session
from vfedsec.protocol.messages import Farewell, Prepare, UpdateShare
from vfedsec.protocol.session import AUTHENTICATED, HEADER_BYTES, SIGNED, channel_with, check_signature, parse, sign

RUN = RunContext(b"run", 0)
IDENTITY = Identity.from_seed(bytes(32))
OURS, THEIRS = EphemeralKey(bytes(range(32)), 0), EphemeralKey(bytes(range(1, 33)), 0)


def ends(run=RUN, party="p"):
    """The aggregator's side and the party's."""
    aggregator = channel_with(OURS, THEIRS.public, run, party, at_party=False)
    return aggregator, channel_with(THEIRS, OURS.public, run, party, at_party=True)


def test_both_sides_believe_each_other():
    aggregator, party = ends()
    party.check(parse(aggregator.protect(1, Prepare())))
    aggregator.check(parse(party.protect(1, Farewell())))


def test_nobody_believes_its_own_frames():
    """A request sent back is no reply."""
    for side in ends():
        with pytest.raises(OpenFailed):
            side.check(parse(side.protect(1, Prepare())))


@given(st.binary(max_size=50), st.data())
def test_any_flipped_bit_is_an_error(words, data):
    aggregator, party = ends()
    frame = bytearray(party.protect(9, UpdateShare(9, memoryview(words))))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises((OpenFailed, RemoteProtocolError)):
        aggregator.check(parse(bytes(frame)))


@pytest.mark.parametrize("change", [{"run": RunContext(b"x", 0)}, {"run": RunContext(b"run", 1)}, {"party": "q"}])
def test_a_frame_is_of_one_run_and_one_party(change):
    with pytest.raises(OpenFailed):
        ends(**change)[1].check(parse(ends()[0].protect(1, Prepare())))


def test_a_frame_keeps_number_kind_and_message():
    frame = parse(ends()[0].protect(77, Prepare()))
    assert (frame.kind, frame.exchange) == (AUTHENTICATED, 77)
    assert len(frame.trailer) == session.TAG_BYTES
    signed = parse(sign(IDENTITY, 78, Prepare()))
    assert (signed.kind, signed.exchange) == (SIGNED, 78)
    assert len(signed.trailer) == session.SIGNATURE_BYTES
    assert bytes(signed.body) == bytes(frame.body)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1",
        b"\1\1" + bytes(7),
        b"\2\1" + bytes(40),
        b"\0\1" + bytes(40),
        b"\1\2" + bytes(80),
        b"\1\1" + bytes(8 + 15),
        b"\1\0" + bytes(8 + 63),
    ],
    ids=lambda data: data[:2].hex() + f"+{len(data)}",
)
def test_bytes_that_cannot_be_a_frame_are_refused(data):
    with pytest.raises(RemoteProtocolError, match="expected a"):
        parse(data)


def test_a_frame_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(session, "MAX_FRAME_BYTES", 100)
    with pytest.raises(RemoteProtocolError, match="at most 100 bytes, got 101"):
        parse(b"\1\1" + bytes(99))


def test_a_signature_verifies_under_its_identity_only():
    frame = parse(sign(IDENTITY, 1, Prepare()))
    check_signature(IDENTITY.public, frame)
    with pytest.raises(OpenFailed):
        check_signature(Identity.from_seed(bytes(range(32))).public, frame)


def test_a_signed_answer_is_tied_to_the_very_greeting_it_answers():
    frame = parse(sign(IDENTITY, 1, Prepare(), answering=b"greeting"))
    check_signature(IDENTITY.public, frame, answering=b"greeting")
    for other in (b"", b"greetinG", b"greeting "):
        with pytest.raises(OpenFailed):
            check_signature(IDENTITY.public, frame, answering=other)


def test_an_announcements_signature_is_no_greetings():
    """Signed texts have labels of their own, so that none can stand for another."""
    covered = sign(IDENTITY, 1, Prepare())[: -session.SIGNATURE_BYTES]
    forged = covered + IDENTITY.sign(b"vfedsec/1 ephemeral key" + covered)
    with pytest.raises(OpenFailed):
        check_signature(IDENTITY.public, parse(forged))


def test_a_degenerate_key_makes_no_channel():
    with pytest.raises(CryptoError):
        channel_with(OURS, bytes(32), RUN, "p", at_party=False)


def test_frames_of_one_message_have_one_length():
    lengths = {len(ends()[1].protect(number, UpdateShare(1, memoryview(bytes([number] * 64))))) for number in range(9)}
    assert len(lengths) == 1
    assert HEADER_BYTES == 10


def test_a_repr_shows_no_key():
    assert repr(ends()[0]) == "Channel(keys=<redacted>)"
