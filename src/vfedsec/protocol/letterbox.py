"""Letters from one party to another, sealed end to end; the aggregator only carries them."""

from __future__ import annotations

from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.keyring import KeyRing
from vfedsec.protocol.messages import Letter


class Letterbox:
    """Seals what one party posts, and opens what it gets."""

    def __init__(self, name: str, keys: KeyRing) -> None:
        self._name = name
        self._keys = keys
        self._sent = 0

    def seal(self, receiver: str, purpose: str, body: bytes, own: bytes = b"", theirs: bytes = b"") -> Letter:
        """A letter under the newest keys, or under those named."""
        own = own or self._keys.newest.key_id
        theirs = theirs or self._keys.latest_of(receiver) or b""
        self._sent += 1
        seal = self._keys.pair(receiver, theirs, own).outgoing(purpose)
        sealed = memoryview(seal.seal(self._sent, body))
        return Letter(self._name, receiver, purpose, self._sent, own, theirs, sealed)

    def open(self, letter: Letter) -> bytes:
        """What a letter says. Raises `OpenFailed`, `CryptoError` or `RemoteProtocolError` unless it is a new one to
        this party from the one it names."""
        if letter.receiver != self._name:
            raise RemoteProtocolError(f"{self._name} cannot accept a letter to {letter.receiver!r}")
        pair = self._keys.pair(letter.sender, letter.sender_key_id, letter.receiver_key_id)
        return pair.incoming(letter.purpose).open(letter.number, letter.sealed)
