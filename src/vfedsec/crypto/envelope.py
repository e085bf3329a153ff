"""Messages from one party to another that the aggregator carries and cannot read or change.

AES-256-GCM under a key of one pair, one direction and one purpose. The number (a round, or a count) is the nonce; it
must grow, on both sides, so that nothing is sealed twice under a nonce and nothing opened twice.
"""

from __future__ import annotations

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from vfedsec.errors import LocalProtocolError, OpenFailed


class Seal:
    """One direction of one pair, for one purpose."""

    def __init__(self, key: bytes, sender: str, receiver: str, purpose: str) -> None:
        self._cipher = AESGCM(key)
        self._label = msgspec.msgpack.encode((sender, receiver, purpose))
        self.last_number = -1

    def seal(self, number: int, plaintext: bytes) -> bytes:
        """Encrypt and authenticate. Raises `LocalProtocolError` if the number does not grow."""
        if number <= self.last_number:
            raise LocalProtocolError(f"cannot seal number {number} after {self.last_number}")
        self.last_number = number
        return self._cipher.encrypt(number.to_bytes(12), plaintext, self._label)

    def open(self, number: int, sealed: bytes | memoryview) -> bytes:
        """The plaintext. Raises `OpenFailed` for anything but what `seal` gave the sender for this number, once."""
        if number <= self.last_number or number < 0:
            raise OpenFailed
        try:
            plaintext = self._cipher.decrypt(number.to_bytes(12), bytes(sealed), self._label)
        except (InvalidTag, OverflowError):
            raise OpenFailed from None
        self.last_number = number
        return plaintext

    def __repr__(self) -> str:
        return f"Seal(last_number={self.last_number}, key=<redacted>)"
