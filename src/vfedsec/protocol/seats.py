"""What a roster means to one of its members: its own key in it, and the pair with everybody else."""

from __future__ import annotations

from dataclasses import dataclass

from vfedsec.crypto.keys import Announcement
from vfedsec.crypto.pairs import Pair
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.keyring import KeyRing
from vfedsec.protocol.messages import Member


@dataclass(frozen=True)
class Seat:
    """A roster, as one of its members sees it."""

    members: list[Member]
    own_key_id: bytes
    pairs: dict[str, Pair]


class Seats:
    """The last seat for each purpose; worked out again only when the roster changes."""

    def __init__(self, name: str, partners: tuple[str, ...], keys: KeyRing) -> None:
        self._name = name
        self._partners = frozenset(partners)
        self._keys = keys
        self._seats: dict[str, Seat] = {}

    def take(self, purpose: str, members: list[Member], announcements: list[Announcement]) -> Seat:
        """The seat in this roster, after learning the new keys in it.

        Raises `RemoteProtocolError` for a roster without this party, with strangers, or with somebody twice, and
        `CryptoError` for keys it does not hold.
        """
        for announcement in announcements:
            self._keys.learn(announcement)
        seat = self._seats.get(purpose)
        if seat is None or seat.members != members:
            seat = self._seats[purpose] = self._work_out(members)
        return seat

    def clear(self) -> None:
        """Forget all seats, and with them the pairs of keys that are erased."""
        self._seats.clear()

    def _work_out(self, members: list[Member]) -> Seat:
        keys = {member.party: member.key_id for member in members}
        own_key_id = keys.pop(self._name, None)
        if own_key_id is None or len(keys) != len(members) - 1 or not keys.keys() <= self._partners:
            raise RemoteProtocolError(f"{self._name} cannot accept a roster of {[member.party for member in members]}")
        pairs = {party: self._keys.pair(party, key_id, own_key_id) for party, key_id in keys.items()}
        return Seat(members, own_key_id, pairs)
