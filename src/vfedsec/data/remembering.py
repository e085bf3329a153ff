"""What the two sides of an alignment remember of it, so that the next run with the same tables skips it.

A passive party remembers the seed of its secret order of rows, and a fingerprint: a keyed hash of its ids in that
order, under that seed. To the active party the fingerprint says "the table is that of last time" and nothing else. The
active party remembers the fingerprint, a digest of its own ids, and where its rows stand in that order. Ids are not
kept. What is damaged, or is of another table, is not used.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Protocol, TypeVar

import msgspec
import numpy as np

from vfedsec.data.alignment_letters import FINGERPRINT_BYTES
from vfedsec.data.ordering import derived_seed, keyed_order
from vfedsec.protocol.interfaces import ABSENT_ROW, Rows
from vfedsec.protocol.messages import UNREADABLE, Count

_VERSION = b"vfedsec alignment 1\n"
_DIGEST_BYTES = 32
_IDS_AT_ONCE = 10_000

Digest = Annotated[bytes, msgspec.Meta(min_length=_DIGEST_BYTES, max_length=_DIGEST_BYTES)]


class Memory(Protocol):
    """Where a party keeps what it remembers of one table: a name and bytes."""

    def load(self, name: str) -> bytes | None:
        """What was saved under this name, or nothing. Raises nothing."""

    def save(self, name: str, data: bytes) -> None:
        """Keep this in place of what had the name. Raises nothing: a run does not fail for it."""

    def warn(self, message: str) -> None:
        """Tell the party's owner."""


class _Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A passive party's record."""

    seed: Digest
    fingerprint: Digest


class _Places(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An active party's record, its rows sorted by their ids."""

    ids: Digest
    fingerprint: Digest
    partner_rows: Count
    places: bytes


_Record = TypeVar("_Record", _Order, _Places)


@dataclass(frozen=True)
class RememberedPlaces:
    """What the active party knows of its rows and those of one passive party."""

    fingerprint: bytes
    rows: int
    """Of the passive party."""
    places: Rows
    """For each own row its place in the passive party's order, or `ABSENT_ROW`."""


class Records:
    """One party's records of its alignments, each in a frame that tells damage."""

    def __init__(self, memory: Memory, party: str, identities: Mapping[str, str]) -> None:
        """Each public identity of a partner has records of its own, since a name can go over to somebody else."""
        self._memory = memory
        self.party = party
        self._identities = identities

    def load(self, partner: str, kind: type[_Record]) -> _Record | None:
        """The record of the alignment with this partner, if there is a sound one."""
        name = self._name(partner, kind)
        data = self._memory.load(name)
        if data is None:
            return None
        head = _head(name, data[len(_VERSION) + _DIGEST_BYTES :])
        try:
            if data.startswith(head):
                return msgspec.msgpack.decode(data[len(head) :], type=kind)
        except UNREADABLE:
            pass
        self.warn_of(partner)
        return None

    def save(self, partner: str, record: _Order | _Places) -> None:
        """Keep a record in place of the last."""
        body, name = msgspec.msgpack.encode(record), self._name(partner, type(record))
        self._memory.save(name, _head(name, body) + body)

    def pair(self, partner: str) -> str:
        """Who aligns with whom."""
        return "\n".join((self.party, partner, self._identities.get(partner, "")))

    def warn_of(self, partner: str) -> None:
        """Tell that the record cannot be used."""
        self._memory.warn(
            f"what {self.party} remembered of its alignment with {partner} is damaged, or another version wrote it; "
            "they align anew"
        )

    def _name(self, partner: str, kind: type) -> str:
        return "\n".join((kind.__name__, self.pair(partner)))


class OrderMemory:
    """A passive party's secret order of rows: that of last time if its ids are still those, or a new one."""

    def __init__(self, ids: Sequence[str], fresh_seed: bytes, records: Records | None, partner: str) -> None:
        self._ids = ids
        self._fresh_seed = fresh_seed
        self._records = records
        self._partner = partner

    @property
    def order(self) -> Rows:
        """All own rows in that order."""
        return self._chosen[1]

    @property
    def fingerprint(self) -> bytes:
        """Of the table in that order; empty where nothing is to be remembered, by the other side either."""
        return self._chosen[2]

    def keep(self) -> None:
        """Remember the order for the next time."""
        if self._records:
            seed, _, fingerprint = self._chosen
            self._records.save(self._partner, _Order(seed, fingerprint))

    @cached_property
    def _chosen(self) -> tuple[bytes, Rows, bytes]:
        """Seed, order and fingerprint."""
        if not self._records:
            return self._fresh_seed, keyed_order(self._ids, self._fresh_seed), b""
        record = self._records.load(self._partner, _Order)
        if record and record.seed != self._fresh_seed:
            chosen = self._ordered(record.seed, self._records)
            if chosen[2] == record.fingerprint:
                return chosen
        return self._ordered(self._fresh_seed, self._records)

    def _ordered(self, seed: bytes, records: Records) -> tuple[bytes, Rows, bytes]:
        order = keyed_order(self._ids, seed)
        mac = hmac.new(derived_seed(seed, f"fingerprint\n{records.pair(self._partner)}"), digestmod="sha256")
        _hash_ids(mac.update, [self._ids[row] for row in order.tolist()])
        return seed, order, mac.digest()


class PlacesMemory:
    """What the active party remembers of each passive one, whatever the order of its own rows."""

    def __init__(self, ids: Sequence[str], records: Records | None) -> None:
        self._ids = ids
        self._records = records

    def recall(self, partner: str) -> RememberedPlaces | None:
        """What holds for the rows as they are now, if anything."""
        record = self._records.load(partner, _Places) if self._records else None
        if not self._records or record is None or record.ids != self._digest:
            return None
        places = np.frombuffer(record.places, "<i4") if len(record.places) == 4 * len(self._ids) else None
        if places is None or not _are_places(places, record.partner_rows):
            self._records.warn_of(partner)
            return None
        in_own_order = np.empty(len(places), np.int32)
        in_own_order[self._sorted] = places
        return RememberedPlaces(record.fingerprint, record.partner_rows, in_own_order)

    def keep(self, partner: str, learned: RememberedPlaces) -> None:
        """Remember what an alignment gave, if both sides want it to be remembered."""
        if self._records and len(learned.fingerprint) == FINGERPRINT_BYTES:
            places = learned.places[self._sorted].astype("<i4").tobytes()
            self._records.save(partner, _Places(self._digest, learned.fingerprint, learned.rows, places))

    @cached_property
    def _sorted(self) -> Rows:
        return np.array(sorted(range(len(self._ids)), key=self._ids.__getitem__), dtype=np.int32)

    @cached_property
    def _digest(self) -> bytes:
        digest = hashlib.sha256()
        _hash_ids(digest.update, [self._ids[row] for row in self._sorted.tolist()])
        return digest.digest()


def _are_places(places: Rows, rows: int) -> bool:
    """Whether each is one of so many rows, no two the same, or `ABSENT_ROW`."""
    held = places[places != ABSENT_ROW]
    return bool(np.all((held >= 0) & (held < rows))) and len(np.unique(held)) == len(held)


def _hash_ids(update: Callable[[bytes], None], ids: Sequence[str]) -> None:
    for start in range(0, len(ids), _IDS_AT_ONCE):
        update(msgspec.msgpack.encode(ids[start : start + _IDS_AT_ONCE]))


def _head(name: str, body: bytes) -> bytes:
    """Version, and a checksum that ties the body to its name."""
    return _VERSION + hashlib.sha256(name.encode() + b"\n\n" + body).digest()
