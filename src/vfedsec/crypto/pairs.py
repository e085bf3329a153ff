"""What two parties share once each knows the other's ephemeral key.

One X25519 secret, and from it by HKDF-SHA256 a different key for every purpose and direction. Run, incarnation, both
names and both public keys are in `info`, so a key never means two things.
"""

from __future__ import annotations

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from vfedsec.crypto.envelope import Seal
from vfedsec.crypto.keys import EphemeralKey, RunContext, key_id
from vfedsec.crypto.masking import MaskStream, Scratch

_FORWARD = "forward mask"
_UPDATE = "update mask"


def derive(secret: bytes, *info: object) -> bytes:
    """32 bytes for one use of a secret; `info` says which."""
    text = b"vfedsec/1 " + msgspec.msgpack.encode(info)
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=text).derive(secret)


class Pair:
    """The keys between this party and one partner, for one ephemeral key of each."""

    def __init__(
        self,
        context: RunContext,
        own: tuple[str, EphemeralKey],
        partner: tuple[str, bytes],
        scratch: Scratch,
    ) -> None:
        self.own_name, own_key = own
        self.partner_name, partner_public = partner
        self.own_key_id, self.partner_key_id = own_key.key_id, key_id(partner_public)
        self._secret = own_key.agree(partner_public)
        ends = sorted([(self.own_name, own_key.public), (self.partner_name, partner_public)])
        self._info = (context.run_id, context.incarnation, *ends)
        self.adds = self.own_name > self.partner_name
        """Whether this side adds the common mask (the paper's n_uv = p) or subtracts it (n_vu = -p)."""
        self._scratch = scratch
        self._forward: MaskStream | None = None
        self._update: MaskStream | None = None
        self._seals: dict[tuple[str, bool], Seal] = {}

    def forward_masks(self) -> MaskStream:
        """Masks of embeddings."""
        if self._forward is None:
            self._forward = MaskStream(self._key(_FORWARD), self._scratch)
        return self._forward

    def update_masks(self) -> MaskStream:
        """Masks of a group's parameter gradients."""
        if self._update is None:
            self._update = MaskStream(self._key(_UPDATE), self._scratch)
        return self._update

    def outgoing(self, purpose: str) -> Seal:
        """Seals what this party sends to the partner."""
        return self._seal(purpose, outward=True)

    def incoming(self, purpose: str) -> Seal:
        """Opens what the partner sends."""
        return self._seal(purpose, outward=False)

    def _seal(self, purpose: str, *, outward: bool) -> Seal:
        if (purpose, outward) not in self._seals:
            names = (self.own_name, self.partner_name)
            sender, receiver = names if outward else names[::-1]
            key = self._key("seal", purpose, sender, receiver)
            self._seals[purpose, outward] = Seal(key, sender, receiver, purpose)
        return self._seals[purpose, outward]

    def _key(self, *purpose: str) -> bytes:
        return derive(self._secret, purpose, *self._info)

    def __repr__(self) -> str:
        return f"Pair({self.own_name!r}, {self.partner_name!r}, secret=<redacted>)"
