"""What parties write to each other before the first round."""

from __future__ import annotations

from typing import Annotated

import msgspec

from vfedsec.data.alignment_letters import AlignmentLetter
from vfedsec.data.summaries import ToldKind
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.messages import UNREADABLE

SEED_BYTES = 32


class GroupKinds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Between passive parties of one group: how the sender reads its columns, in the order of the job."""

    columns: list[ToldKind]
    seed: Annotated[bytes, msgspec.Meta(min_length=SEED_BYTES, max_length=SEED_BYTES)]
    """The sender's half of the secret that masks the sums between it and the receiver."""


class GroupCategories(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Between passive parties of one group: which texts occur, not how often."""

    columns: list[list[str]]
    """For every column of the job, sorted; none where the group does not read it as categories."""


class GroupSums(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Between passive parties of one group: the sender's counts and sums under the masks of all pairs."""

    masked: bytes


Letter = AlignmentLetter | GroupKinds | GroupCategories | GroupSums

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
