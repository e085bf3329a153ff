"""What parties write to each other before the first round."""

from __future__ import annotations

import msgspec

from vfedsec.config.party import ColumnKind
from vfedsec.data.alignment_letters import AlignmentLetter
from vfedsec.data.encoding import ColumnSummary
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.messages import UNREADABLE


class GroupKinds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Between passive parties of one group: how the sender reads its columns, in the order of the job."""

    kinds: list[ColumnKind | None]
    """None for a column without any value."""


class GroupSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Between passive parties of one group: the sender's columns, in the order of the job."""

    columns: list[ColumnSummary]


Letter = AlignmentLetter | GroupKinds | GroupSummary

_decoder: msgspec.msgpack.Decoder[Letter] = msgspec.msgpack.Decoder(Letter)


def write(letter: Letter) -> bytes:
    """The letter's bytes."""
    return msgspec.msgpack.encode(letter)


def read(sender: str, body: bytes) -> Letter:
    """The letter in these bytes. Raises `RemoteProtocolError` when there is none."""
    try:
        return _decoder.decode(body)
    except UNREADABLE:
        raise RemoteProtocolError(f"{sender} sent a letter of preparation that cannot be read") from None
