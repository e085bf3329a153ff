"""What the active party and a passive one write to each other to align their rows.

Elements stand one behind the other, without anything between them: with the number of rows that both sides have told,
the length of every piece is known.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from vfedsec.protocol.messages import Count

FINGERPRINT_BYTES = 32
Fingerprint = Annotated[bytes, msgspec.Meta(max_length=FINGERPRINT_BYTES)]
"""Names a passive party's table as it was once aligned with the active party; empty where nothing is remembered."""


class AlignmentOpening(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Active party to passive party: the first letter."""

    rows: Count
    """Of its table."""
    fingerprint: Fingerprint = b""
    """What the passive party told when they were aligned last, if the sender's own rows are still those."""


class AlignmentOpened(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Passive party to active party. If it tells the fingerprint it was told, they are aligned; otherwise the pieces
    follow."""

    rows: Count
    """Of its table."""
    fingerprint: Fingerprint = b""


class AlignmentRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Active party to passive party: a piece of its blinded ids; empty once it has no more."""

    number: Count
    elements: bytes


class AlignmentReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Passive party to active party, for each request one."""

    number: Count
    answers: bytes
    """The request's elements, blinded once more, in their order."""
    elements: bytes
    """A piece of the sender's own blinded ids, in its secret order; empty once it has no more."""


AlignmentLetter = AlignmentOpening | AlignmentOpened | AlignmentRequest | AlignmentReply
