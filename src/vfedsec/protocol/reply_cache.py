"""One reply an exchange: a repeat of one of the last requests gets the very same bytes, all else that is not new is
refused."""

from __future__ import annotations

from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.session import Frame

_REPLIES_KEPT = 2


class ReplyCache:
    """The last replies of a party, and how far it has come."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._replies: dict[int, tuple[bytes, bytes]] = {}
        self._last_exchange = -1

    def repeated(self, frame: Frame) -> bytes | None:
        """The reply to this very frame, if it was answered before. Raises `RemoteProtocolError` for any other that
        is not newer than the last."""
        trailer, reply = self._replies.get(frame.exchange, (b"", b""))
        if reply and trailer == frame.trailer:
            return reply
        if frame.exchange <= self._last_exchange:
            raise RemoteProtocolError(
                f"{self._name} cannot accept exchange {frame.exchange}: it has seen {self._last_exchange}"
            )
        return None

    def enter(self, frame: Frame) -> None:
        """From here on no other frame of this exchange or of an earlier one is answered, whether this one is or not."""
        self._last_exchange = frame.exchange

    def keep(self, frame: Frame, reply: bytes) -> None:
        """Remember a reply, and forget the oldest."""
        self._replies[frame.exchange] = (frame.trailer, reply)
        while len(self._replies) > _REPLIES_KEPT:
            del self._replies[next(iter(self._replies))]
