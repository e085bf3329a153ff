"""A party's ephemeral keys, what it knows of its partners' keys, and the pairs between them.

An own key is kept from its announcement until the roster uses a later one and nothing sealed with it is under way; of
a partner the last two keys are kept. Everything dropped is dropped with its pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vfedsec.crypto.keys import (
    Announcement,
    EphemeralKey,
    Identity,
    PublicIdentity,
    RunContext,
    announce,
    check_announcement,
)
from vfedsec.crypto.masking import Scratch
from vfedsec.crypto.pairs import Pair
from vfedsec.errors import CryptoError, RemoteProtocolError

Entropy = Callable[[int], bytes]
"""Gives that many fresh random bytes."""

_PARTNER_KEYS_KEPT = 2


class KeyRing:
    """The keys of one party in one run."""

    def __init__(
        self,
        name: str,
        identity: Identity,
        identities: Mapping[str, PublicIdentity],
        entropy: Entropy,
        scratch: Scratch,
    ) -> None:
        self._name = name
        self._identity = identity
        self._identities = identities
        self._entropy = entropy
        self._scratch = scratch
        self.context = RunContext(b"", 0)
        self._own: dict[bytes, EphemeralKey] = {}
        self._partners: dict[str, dict[bytes, Announcement]] = {}
        self._pairs: dict[tuple[str, bytes, bytes], Pair] = {}

    def begin(self, context: RunContext) -> None:
        """Enter a run, a new incarnation of it, or a new session. Own keys from before are erased, with all that was
        agreed under them; what is known of partners is kept within a run, so that their old keys stay old."""
        if context != self.context:
            self.context = context
            self._partners.clear()
        self._own.clear()
        self._pairs.clear()

    @property
    def newest(self) -> EphemeralKey:
        """The key announced last."""
        return next(reversed(self._own.values()))

    def renew(self, round_index: int) -> EphemeralKey:
        """A fresh key, from here on the newest."""
        key = self.fresh(round_index)
        self.adopt(key)
        return key

    def fresh(self, round_index: int) -> EphemeralKey:
        """A new key, not yet in use."""
        return EphemeralKey(self._entropy(32), round_index)

    def adopt(self, key: EphemeralKey) -> None:
        """From here on this is the newest own key."""
        self._own[key.key_id] = key

    def announcement(self) -> Announcement:
        """The newest key, signed."""
        return announce(self._identity, self.context, self._name, self.newest)

    def retire_before(self, key_id: bytes) -> bool:
        """Erase the own keys that are older than this one; whether there were any."""
        if key_id not in self._own or key_id == next(iter(self._own)):
            return False
        while (old := next(iter(self._own))) != key_id:
            del self._own[old]
            self._pairs = {ends: pair for ends, pair in self._pairs.items() if ends[2] != old}
        return True

    def learn(self, announcement: Announcement) -> None:
        """Take a partner's key. Raises `CryptoError` unless its pinned identity signed it for this run, and
        `RemoteProtocolError` when it is older than one already known."""
        party, key_id = announcement.party, announcement.key_id
        known = self._partners.get(party, {})
        if key_id in known:
            return
        identity = self._identities.get(party)
        if identity is None or party == self._name:
            raise RemoteProtocolError(f"{self._name} cannot take a key of {party!r}: not a partner")
        if known and announcement.issued_round <= max(a.issued_round for a in known.values()):
            raise RemoteProtocolError(f"{self._name} cannot take a key of {party} that is not newer than the last")
        check_announcement(announcement, identity, self.context)
        self._partners[party] = known
        known[key_id] = announcement
        while len(known) > _PARTNER_KEYS_KEPT:
            old = next(iter(known))
            del known[old]
            self._pairs = {ends: pair for ends, pair in self._pairs.items() if ends[:2] != (party, old)}

    def latest_of(self, partner: str) -> bytes | None:
        """The id of the partner's last known key."""
        known = self._partners.get(partner)
        return next(reversed(known)) if known else None

    def pair(self, partner: str, partner_key_id: bytes, own_key_id: bytes) -> Pair:
        """What this party shares with a partner under these keys. Raises `CryptoError` for keys it does not hold."""
        ends = (partner, partner_key_id, own_key_id)
        pair = self._pairs.get(ends)
        if pair is None:
            pair = self._pairs[ends] = self._agree(*ends)
        return pair

    def _agree(self, partner: str, partner_key_id: bytes, own_key_id: bytes) -> Pair:
        own = self._own.get(own_key_id)
        announcement = self._partners.get(partner, {}).get(partner_key_id)
        if own is None or announcement is None:
            whose = "its own" if own is None else f"{partner}'s"
            raise CryptoError(f"{self._name} does not hold {whose} key that the message names")
        ends = ((self._name, own), (partner, announcement.public_key))
        return Pair(self.context, *ends, self._scratch)
