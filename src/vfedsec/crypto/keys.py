"""Long-lived identities, ephemeral keys, and the signed word that ties one to the other.

Assumptions: the public halves of the identities are pinned by whoever reads the job file; private halves never
leave their party. An ephemeral key lives in memory only and is dropped as soon as nothing sealed or masked
with it is under way.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from vfedsec.errors import CryptoError

KEY_BYTES = 32
KEY_ID_BYTES = 8
RUN_ID_BYTES = 16


@dataclass(frozen=True)
class RunContext:
    """What every key and signature of one run is bound to."""

    run_id: bytes
    incarnation: int


class PublicIdentity:
    """The pinned half of a party's Ed25519 key."""

    def __init__(self, raw: bytes) -> None:
        if len(raw) != KEY_BYTES:
            raise CryptoError(f"an identity has {KEY_BYTES} bytes, got {len(raw)}")
        self.raw = raw
        self._key = Ed25519PublicKey.from_public_bytes(raw)

    @classmethod
    def from_text(cls, text: str) -> PublicIdentity:
        """From the base64 that stands in a job file."""
        try:
            return cls(base64.b64decode(text, validate=True))
        except binascii.Error:
            raise CryptoError("an identity is 32 bytes in base64") from None

    def text(self) -> str:
        """The base64 that stands in a job file."""
        return base64.b64encode(self.raw).decode()

    def verify(self, signature: bytes, message: bytes) -> None:
        """Raises `CryptoError` unless this identity signed exactly this message."""
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            raise CryptoError("a signature does not verify under the pinned identity") from None


class Identity:
    """A party's long-lived Ed25519 key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicIdentity(key.public_key().public_bytes_raw())

    @classmethod
    def from_seed(cls, seed: bytes) -> Identity:
        """From 32 secret bytes."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, pem: bytes) -> Identity:
        """From an unencrypted PKCS#8 PEM. Raises `CryptoError` for anything else."""
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError):
            raise CryptoError("an identity file holds an unencrypted PKCS#8 PEM") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise CryptoError("an identity file holds an Ed25519 key")
        return cls(key)

    def pem(self) -> bytes:
        """PKCS#8 PEM, for a file that only its owner can read."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, message: bytes) -> bytes:
        """64 bytes that `PublicIdentity.verify` accepts."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"Identity(public={self.public.text()!r}, private=<redacted>)"


class EphemeralKey:
    """One X25519 key pair of a party in a run."""

    def __init__(self, entropy: bytes, issued_round: int) -> None:
        self._key = X25519PrivateKey.from_private_bytes(entropy)
        self.issued_round = issued_round
        self.public = self._key.public_key().public_bytes_raw()
        self.key_id = key_id(self.public)

    def agree(self, peer_public: bytes) -> bytes:
        """The shared secret with the holder of the other key. Raises `CryptoError` for a degenerate one."""
        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(peer_public))
        except ValueError:
            raise CryptoError("a public key gives no shared secret") from None

    def __repr__(self) -> str:
        return f"EphemeralKey(key_id={self.key_id.hex()}, private=<redacted>)"


def key_id(public_key: bytes) -> bytes:
    """A short name of an ephemeral key; it needs no counter that a restart could lose."""
    return hashlib.sha256(public_key).digest()[:KEY_ID_BYTES]


class Announcement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party's ephemeral public key, signed with its identity for one run and one round of issue."""

    party: str
    issued_round: int
    public_key: bytes
    signature: bytes

    @property
    def key_id(self) -> bytes:
        """The short name of the announced key."""
        return key_id(self.public_key)


def announce(identity: Identity, context: RunContext, party: str, key: EphemeralKey) -> Announcement:
    """Sign an ephemeral key."""
    text = _signed_text(context, party, key.issued_round, key.public)
    return Announcement(party, key.issued_round, key.public, identity.sign(text))


def check_announcement(announcement: Announcement, identity: PublicIdentity, context: RunContext) -> None:
    """Raises `CryptoError` unless the identity signed this key for this run and round."""
    identity.verify(
        announcement.signature,
        _signed_text(context, announcement.party, announcement.issued_round, announcement.public_key),
    )


def check_usable(public_key: bytes) -> None:
    """Raises `CryptoError` for a point of low order, with which nobody can agree on anything."""
    _PROBE.agree(public_key)


def _signed_text(context: RunContext, party: str, issued_round: int, public_key: bytes) -> bytes:
    fields = (context.run_id, context.incarnation, party, issued_round, public_key)
    return b"vfedsec/1 ephemeral key" + msgspec.msgpack.encode(fields)


_PROBE = EphemeralKey(bytes(KEY_BYTES), 0)
