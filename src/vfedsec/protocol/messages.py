"""Everything that travels, as frozen structs in MessagePack; numbers travel as raw little-endian bytes.

Requests go from the aggregator to a party, replies come back, one each. Unknown tags, fields and types do not decode.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from vfedsec.crypto.keys import KEY_ID_BYTES, Announcement
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.interfaces import BatchKind

Raw = memoryview
"""Bytes inside a message; decoded without a copy."""

KeyId = Annotated[bytes, msgspec.Meta(min_length=KEY_ID_BYTES, max_length=KEY_ID_BYTES)]
"""The short name of an ephemeral key."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""Of rows or batches."""

Size = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""Of several tables together."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that hold no such message; the last one for fields nested without end."""


class _Message(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request or a reply."""


class _Part(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A piece of messages."""


class Batch(_Part, frozen=True):
    """Which mini-batch: the active party knows its rows, a passive one those of its own."""

    kind: BatchKind
    epoch: int
    index: int


class Member(_Part, frozen=True):
    """A party of the roster, with the ephemeral key it uses this round."""

    party: str
    key_id: KeyId


class Envelope(_Part, frozen=True):
    """The row numbers of one batch for one passive party, sealed by the active one."""

    round_index: int
    sender_key_id: KeyId
    receiver_key_id: KeyId
    sealed: Raw


class Letter(_Part, frozen=True):
    """A message from party to party, sealed end to end."""

    sender: str
    receiver: str
    purpose: str
    number: int
    sender_key_id: KeyId
    receiver_key_id: KeyId
    sealed: Raw


class BlindSum(_Part, frozen=True):
    """The sum of a group's blinded parameter gradients of one round, who added to it, and the round of the state it
    continues from."""

    round_index: int
    base_round: int
    members: list[Member]
    words: Raw


class Hello(_Message, frozen=True):
    """Begin, or begin again: the aggregator's side of a new session with one party. Signed."""

    party: str
    run_id: bytes
    incarnation: int
    round_index: int
    job_digest: bytes
    version: str
    public_key: bytes


class Deliver(_Message, frozen=True):
    """Letters of the preparation, with the keys of those they came from."""

    letters: list[Letter]
    announcements: list[Announcement] = []


class Round(_Message, frozen=True):
    """One mini-batch: what the last one brought, and what this one needs."""

    round_index: int
    batch: Batch | None = None
    next_batch: Batch | None = None
    roster: list[Member] = []
    announcements: list[Announcement] = []
    gradient: Raw | None = None
    updates: list[BlindSum] = []
    envelope: Envelope | None = None
    outputs: Raw | None = None
    donate_to: list[Member] = []
    donation: Letter | None = None


class Update(_Message, frozen=True):
    """For the members of a group of several: their gradient, to be turned into a blinded share of the sum."""

    round_index: int
    members: list[Member]
    gradient: Raw


class Finish(_Message, frozen=True):
    """The run is over, with the last outputs and updates."""

    reason: str
    round_index: int
    gradient: Raw | None = None
    updates: list[BlindSum] = []
    outputs: Raw | None = None


class Welcome(_Message, frozen=True):
    """The party's side of the session. Signed."""

    announcement: Announcement
    model_round: int
    version: str


class Mail(_Message, frozen=True):
    """Letters to pass on, and how far the party's alignment is."""

    letters: list[Letter]
    rows_aligned: Size = 0
    rows_to_align: Size = 0


class Ready(_Message, frozen=True):
    """The preparation is over for this party; the active one says how many batches a pass takes, how many
    rows one of predictions, and with `class_weights = "balanced"` how many training rows each class has."""

    train_batches: Count = 0
    validation_batches: Count = 0
    test_batches: Count = 0
    predict_batches: Count = 0
    predict_rows: Count = 0
    class_rows: list[Count] = []


class Share(_Message, frozen=True):
    """A party's masked embedding of a round, one piece a slice; and what rides along."""

    round_index: int
    slices: dict[int, Raw]
    model_round: int = 0
    """The round whose update the party's model has taken last."""
    labels: Raw | None = None
    valid: int = 0
    envelopes: dict[str, Envelope] = {}
    announcement: Announcement | None = None
    donations: list[Letter] = []
    predicted: int = 0
    """Of how many rows the active party has predictions."""


class UpdateShare(_Message, frozen=True):
    """A member's blinded parameter gradient."""

    round_index: int
    words: Raw


class Farewell(_Message, frozen=True):
    """The party has heard that the run is over."""


class Prepare(_Message, frozen=True):
    """No more letters will come: build the models."""


Request = Hello | Deliver | Prepare | Round | Update | Finish
Reply = Welcome | Mail | Ready | Share | UpdateShare | Farewell

_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(Request)
_replies = msgspec.msgpack.Decoder(Reply)


def encode_into(message: Request | Reply, buffer: bytearray, offset: int) -> None:
    """Write a message behind what the buffer holds up to `offset`."""
    _encoder.encode_into(message, buffer, offset)


def decode_request(body: memoryview) -> Request:
    """What the aggregator said. Raises `RemoteProtocolError` when it is no request."""
    try:
        request: Request = _requests.decode(body)
        return request
    except UNREADABLE as error:
        raise RemoteProtocolError(f"expected a request: {error}") from None


def decode_reply(body: memoryview) -> Reply:
    """What a party said. Raises `RemoteProtocolError` when it is no reply."""
    try:
        reply: Reply = _replies.decode(body)
        return reply
    except UNREADABLE as error:
        raise RemoteProtocolError(f"expected a reply: {error}") from None
