"""How the rows of an alignment are cut into pieces, and what a piece off the wire has to be."""

from __future__ import annotations

from vfedsec.data.curve import ELEMENT_BYTES, Curve
from vfedsec.errors import RemoteProtocolError

_ROWS_AT_ONCE = 14_000
"""Of all passive parties together, on their way to the active one or back: two elements a row then stay below a
megabyte, which is what a frame may have in many networks, and a party answers within two seconds or so."""


def rows_a_piece(passive_parties: int) -> int:
    """How many rows of each side one letter covers."""
    return max(_ROWS_AT_ONCE // passive_parties, 1)


class Pieces:
    """Of the rows of an active and a passive party. Piece n of the one travels with piece n of the other."""

    def __init__(self, active_rows: int, passive_rows: int, size: int) -> None:
        self._active_rows = active_rows
        self._passive_rows = passive_rows
        self._size = size
        self.total = active_rows + passive_rows
        """Rows of both."""
        self.count = -(-max(active_rows, passive_rows) // size)
        """How many there are."""

    def active(self, number: int) -> slice:
        """The active party's rows in a piece."""
        return self._rows(self._active_rows, number)

    def passive(self, number: int) -> slice:
        """The passive party's rows in a piece."""
        return self._rows(self._passive_rows, number)

    def before(self, number: int) -> int:
        """Rows of both in the pieces before this one."""
        reached = number * self._size
        return min(reached, self._active_rows) + min(reached, self._passive_rows)

    def _rows(self, rows: int, number: int) -> slice:
        start, stop = number * self._size, (number + 1) * self._size
        return slice(min(start, rows), min(stop, rows))


def check_length(sender: str, elements: bytes, rows: slice) -> None:
    """Raises `RemoteProtocolError` unless there is one element for each of these rows."""
    expected = rows.stop - rows.start
    if len(elements) != expected * ELEMENT_BYTES:
        raise RemoteProtocolError(
            f"{sender} sent {len(elements)} bytes of alignment elements where {expected} elements were expected"
        )


def raised(sender: str, curve: Curve, elements: bytes, key: bytes) -> bytes:
    """The sender's elements raised to a key. Raises `RemoteProtocolError` where they are not of the curve."""
    try:
        return curve.raised(elements, key)
    except ValueError:
        raise RemoteProtocolError(f"{sender} sent alignment elements that cannot be read") from None


def out_of_turn(sender: str) -> RemoteProtocolError:
    """The error for a piece that is not the next one."""
    return RemoteProtocolError(f"{sender} sent a piece of the alignment out of turn")


def twice(sender: str) -> RemoteProtocolError:
    """The error for an element that stands in two places."""
    return RemoteProtocolError(f"{sender} sent the same alignment element twice")
