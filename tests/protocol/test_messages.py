"""Messages in bytes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.keys import Announcement
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol import messages as m
from vfedsec.protocol.messages import decode_reply, decode_request, encode_into

RAW = memoryview(b"raw bytes")
KEY = Announcement("p", 3, bytes(32), bytes(64))
MEMBER, ENVELOPE = m.Member("p", b"key of p"), m.Envelope(4, b"key of p", b"key of q", RAW)
LETTER = m.Letter("p", "q", "group", 1, b"key of p", b"key of q", RAW)
SUM, BATCH = m.BlindSum(4, 3, [MEMBER, m.Member("q", b"key of q")], RAW), m.Batch("train", 1, 2)

REQUESTS = [
    m.Hello("p", b"run", 0, 5, bytes(32), "0.1.0", bytes(32)),
    m.Deliver([LETTER], [KEY]),
    m.Prepare(),
    m.Round(7),
    m.Round(7, BATCH, BATCH, [MEMBER], [KEY], RAW, [SUM], ENVELOPE, RAW, [MEMBER], LETTER),
    m.Update(7, [MEMBER], RAW),
    m.Finish("finished", 7, RAW, [SUM], RAW),
]
REPLIES = [
    m.Welcome(KEY, -1, "0.1.0"),
    m.Mail([LETTER]),
    m.Ready(1, 2, 3, 4),
    m.Ready(1, 2, 3, 4, class_rows=[0, 7]),
    m.Share(7, {0: RAW, 3: RAW}, 6, RAW, 5, {"q": ENVELOPE}, KEY, [LETTER]),
    m.UpdateShare(7, RAW),
    m.Farewell(),
]


def encoded(message):
    buffer = bytearray(b"head")
    encode_into(message, buffer, 4)
    assert buffer[:4] == b"head"
    return memoryview(buffer)[4:]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda message: type(message).__name__)
def test_a_request_comes_back_as_it_was(request_):
    assert decode_request(encoded(request_)) == request_


@pytest.mark.parametrize("reply", REPLIES, ids=lambda message: type(message).__name__)
def test_a_reply_comes_back_as_it_was(reply):
    assert decode_reply(encoded(reply)) == reply


@pytest.mark.parametrize("reply", REPLIES, ids=lambda message: type(message).__name__)
def test_a_reply_is_no_request(reply):
    with pytest.raises(RemoteProtocolError, match="expected a request"):
        decode_request(encoded(reply))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda message: type(message).__name__)
def test_a_request_is_no_reply(request_):
    with pytest.raises(RemoteProtocolError, match="expected a reply"):
        decode_reply(encoded(request_))


@pytest.mark.parametrize(
    "content",
    [
        {"type": "Evil"},
        {"type": "Prepare", "more": 1},
        {"type": "Update", "round_index": "1", "members": [], "gradient": b""},
        {"type": "Update", "round_index": 1, "members": [["p"]], "gradient": b""},
        {"type": "Update", "round_index": 1, "members": []},
        {"type": "Round", "round_index": 1, "batch": ["weekend", 0, 0]},
        {"type": "Round", "round_index": 1.5},
        {},
        [],
        7,
        None,
        "Prepare",
    ],
    ids=str,
)
def test_unknown_tags_fields_and_types_do_not_decode(content):
    with pytest.raises(RemoteProtocolError, match="expected a request"):
        decode_request(memoryview(msgspec.msgpack.encode(content)))


def test_a_part_with_more_than_it_should_have_does_not_decode():
    def roster(*part):
        body = msgspec.msgpack.encode({"type": "Round", "round_index": 1, "roster": [part]})
        return decode_request(memoryview(body)).roster

    assert roster("p", b"key of p") == [MEMBER]
    with pytest.raises(RemoteProtocolError, match="expected a request"):
        roster("p", b"key of p", b"more")


@pytest.mark.parametrize("decode", [decode_request, decode_reply])
def test_text_that_is_not_utf_8_is_a_protocol_error(decode):
    with pytest.raises(RemoteProtocolError):
        decode(memoryview(b"\x81\xa4type\xa1\xff"))


@given(st.binary(max_size=200))
def test_any_other_bytes_are_a_protocol_error(junk):
    for decode in (decode_request, decode_reply):
        try:
            decode(memoryview(junk))
        except RemoteProtocolError:
            continue
        raise AssertionError("junk was taken for a message")


@given(st.sampled_from(REQUESTS), st.data())
def test_a_cut_request_is_a_protocol_error(request_, data):
    body = encoded(request_)
    with pytest.raises(RemoteProtocolError):
        decode_request(body[: data.draw(st.integers(0, len(body) - 1))])


def test_bytes_inside_a_message_are_not_copied():
    body = encoded(m.UpdateShare(1, memoryview(bytes(1000))))
    assert decode_reply(body).words.obj is body.obj


def test_messages_are_frozen():
    with pytest.raises(AttributeError):
        REQUESTS[3].round_index = 8


@pytest.mark.parametrize("decode", [decode_request, decode_reply])
@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_fields_nested_without_end_are_no_message(decode, depth):
    """The tag behind them, so that they are read before anything is known to be wrong."""
    nested = b"\x82\xa1a" + b"\x91" * depth + b"\xc0" + b"\xa4type" + msgspec.msgpack.encode("Round")
    with pytest.raises(RemoteProtocolError, match="expected a re"):
        decode(memoryview(nested))


@pytest.mark.parametrize("number", [-1, 2**31])
def test_nobody_has_so_many_batches_or_rows(number):
    for ready in (m.Ready(train_batches=number), m.Ready(class_rows=[number, 1])):
        with pytest.raises(RemoteProtocolError, match="expected a reply"):
            decode_reply(encoded(ready))


@pytest.mark.parametrize("key_id", [b"", b"short", bytes(1000)])
def test_the_name_of_a_key_has_eight_bytes(key_id):
    with pytest.raises(RemoteProtocolError, match="expected a request"):
        decode_request(encoded(m.Round(7, roster=[m.Member("p", key_id)])))
