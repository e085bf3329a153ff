"""Frames: how a message is wrapped so that a changed, cut or misdirected one is an error and never a wrong number.

    version (1) | kind (1) | exchange (8) | message | trailer

A greeting's trailer is an Ed25519 signature under a pinned identity (64 bytes); every later frame's is an AES-GMAC tag
(16 bytes) under the key the greeting agreed on, one key for each direction. The nonce is the exchange number: the
aggregator never uses one twice, a party answers one exchange with one frame.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from vfedsec.crypto.keys import EphemeralKey, Identity, PublicIdentity, RunContext
from vfedsec.crypto.pairs import derive
from vfedsec.errors import CryptoError, OpenFailed, RemoteProtocolError
from vfedsec.protocol.messages import Reply, Request, encode_into

VERSION = 1
SIGNED, AUTHENTICATED = 0, 1
SIGNATURE_BYTES = 64
TAG_BYTES = 16
MAX_FRAME_BYTES = 1 << 30
_HEADER = struct.Struct(">BBQ")
HEADER_BYTES = _HEADER.size
_TRAILER_BYTES = {SIGNED: SIGNATURE_BYTES, AUTHENTICATED: TAG_BYTES}


class Frame(NamedTuple):
    """A frame taken apart, not yet believed."""

    kind: int
    exchange: int
    body: memoryview
    trailer: bytes
    covered: memoryview


def parse(data: bytes) -> Frame:
    """Take a frame apart. Raises `RemoteProtocolError` for what cannot be one."""
    size = len(data)
    if size > MAX_FRAME_BYTES:
        raise RemoteProtocolError(f"expected a frame of at most {MAX_FRAME_BYTES} bytes, got {size}")
    version, kind, exchange = _HEADER.unpack_from(data) if size >= HEADER_BYTES else (0, 0, 0)
    if version != VERSION or kind not in _TRAILER_BYTES:
        raise RemoteProtocolError(f"expected a frame of version {VERSION}, got something else")
    cut = size - _TRAILER_BYTES[kind]
    if cut < HEADER_BYTES:
        raise RemoteProtocolError(f"expected a whole frame, got {size} bytes")
    covered = memoryview(data)[:cut]
    return Frame(kind, exchange, covered[HEADER_BYTES:], data[cut:], covered)


def _start(kind: int, exchange: int, message: Request | Reply) -> bytearray:
    buffer = bytearray(_HEADER.pack(VERSION, kind, exchange))
    encode_into(message, buffer, HEADER_BYTES)
    return buffer


def sign(identity: Identity, exchange: int, message: Request | Reply, answering: bytes = b"") -> bytes:
    """A signed frame; `answering` ties a welcome to the very greeting it answers."""
    buffer = _start(SIGNED, exchange, message)
    buffer += identity.sign(_signed_text(buffer, answering))
    return bytes(buffer)


def check_signature(identity: PublicIdentity, frame: Frame, answering: bytes = b"") -> None:
    """Raises `OpenFailed` unless the identity signed this frame as such an answer."""
    try:
        identity.verify(frame.trailer, _signed_text(frame.covered, answering))
    except CryptoError:
        raise OpenFailed from None


def _signed_text(covered: bytearray | memoryview, answering: bytes) -> bytes:
    return b"vfedsec/1 greeting" + hashlib.sha256(answering).digest() + bytes(covered)


class Channel:
    """The authenticated frames between the aggregator and one party, until the next greeting."""

    def __init__(self, secret: bytes, context: RunContext, party: str, *, at_party: bool) -> None:
        info = (context.run_id, context.incarnation, party)
        down = AESGCM(derive(secret, "channel", "request", *info))
        up = AESGCM(derive(secret, "channel", "reply", *info))
        self._outgoing, self._incoming = (up, down) if at_party else (down, up)

    def protect(self, exchange: int, message: Request | Reply) -> bytes:
        """An authenticated frame."""
        buffer = _start(AUTHENTICATED, exchange, message)
        buffer += self._outgoing.encrypt(exchange.to_bytes(12), b"", memoryview(buffer))
        return bytes(buffer)

    def check(self, frame: Frame) -> None:
        """Raises `OpenFailed` unless the other side made this frame for this session."""
        try:
            self._incoming.decrypt(frame.exchange.to_bytes(12), frame.trailer, frame.covered)
        except InvalidTag:
            raise OpenFailed from None

    def __repr__(self) -> str:
        return "Channel(keys=<redacted>)"


def channel_with(key: EphemeralKey, peer_public: bytes, context: RunContext, party: str, *, at_party: bool) -> Channel:
    """The channel that both ephemeral keys of a greeting agree on."""
    return Channel(key.agree(peer_public), context, party, at_party=at_party)
