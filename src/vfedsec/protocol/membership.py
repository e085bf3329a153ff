"""Who can be reckoned with, whose key is known to whom, and how far each replica of a model has come.

A party that misses an exchange is away: it leaves the roster, so that its group goes on without it, and is greeted
until it answers. Where nobody gains by leaving it out (its group has nobody else, or the policy needs everybody) a
short silence is forgiven, so that a single lost reply costs a single round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vfedsec.config.job import Job
from vfedsec.crypto.keys import Announcement
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.messages import Member
from vfedsec.protocol.roles import Roles

_KEYS_KEPT = 2


@dataclass
class _Standing:
    """What the aggregator knows of one party."""

    is_away: bool = False
    misses: int = 0
    model_round: int = 0
    issued_round: int = -1
    """Of the newest key."""
    keys: dict[bytes, Announcement] = field(default_factory=dict)
    told: set[bytes] = field(default_factory=set)


class Membership:
    """The standing of every party."""

    def __init__(self, job: Job, roles: Roles) -> None:
        self._roles = roles
        self._needs_everybody = job.dropout.policy == "discard"
        self._is_concat = job.fusion.kind == "concat"
        self._standings = {party: _Standing() for party in roles.parties}

    @property
    def away(self) -> tuple[str, ...]:
        """Those out of the roster."""
        return tuple(party for party, standing in self._standings.items() if standing.is_away)

    def is_known(self, party: str) -> bool:
        """Whether the party has been greeted and is not away."""
        standing = self._standings[party]
        return bool(standing.keys) and not standing.is_away

    def _forgiven(self, party: str) -> int:
        """How many misses in a row leave a party in the roster."""
        if party == self._roles.active:
            return 0
        gains = not self._needs_everybody and (not self._is_concat or self._roles.is_replicated(party))
        return 0 if gains else 1

    def missed(self, party: str, *, is_gone: bool) -> None:
        """No reply came; `is_gone` if it is known that none will."""
        standing = self._standings[party]
        standing.misses += 1
        if is_gone or standing.misses > self._forgiven(party):
            standing.is_away = True

    def answered(self, party: str) -> None:
        """A reply came."""
        self._standings[party].misses = 0

    def welcomed(self, party: str, announcement: Announcement, model_round: int) -> None:
        """A greeting was answered: the party may know nothing any more, and has this one key. Raises as `announced`."""
        self._check_newer(party, announcement)
        self._standings[party] = _Standing(
            model_round=model_round,
            issued_round=announcement.issued_round,
            keys={announcement.key_id: announcement},
        )

    # -- keys --

    def announced(self, party: str, announcement: Announcement) -> bool:
        """A new key rode on a reply; whether it really is new. Raises `RemoteProtocolError` for one that its partners
        would refuse, and every roster with it, because it is not newer than the last."""
        keys = self._standings[party].keys
        key_id = announcement.key_id
        if key_id in keys:
            return False
        self._check_newer(party, announcement)
        self._standings[party].issued_round = announcement.issued_round
        keys[key_id] = announcement
        while len(keys) > _KEYS_KEPT:
            del keys[next(iter(keys))]
        return True

    def _check_newer(self, party: str, announcement: Announcement) -> None:
        last = self._standings[party].issued_round
        if announcement.issued_round <= last:
            raise RemoteProtocolError(
                f"{party} cannot announce a key of round {announcement.issued_round} after one of {last}"
            )

    def holds(self, party: str, key_id: bytes) -> bool:
        """Whether the party has announced this key since it was last greeted."""
        return key_id in self._standings[party].keys

    def member(self, party: str) -> Member:
        """The party with its newest key."""
        return Member(party, next(reversed(self._standings[party].keys)))

    def news_for(self, party: str) -> list[Announcement]:
        """The keys of its partners that it has not yet confirmed to have."""
        told = self._standings[party].told
        return [
            announcement
            for partner in self._roles.partners(party)
            for key_id, announcement in self._standings[partner].keys.items()
            if key_id not in told
        ]

    def confirm_news(self, party: str, news: Iterable[Announcement]) -> None:
        """The party answered the request that brought these keys."""
        fresh = {key.key_id for key in news}
        if fresh:
            current = {key for partner in self._roles.partners(party) for key in self._standings[partner].keys}
            standing = self._standings[party]
            standing.told = (standing.told | fresh) & current  # keys that are gone are told to nobody again

    # -- replicas --

    def reached(self, party: str, model_round: int) -> None:
        """The party said how far its model has come."""
        self._standings[party].model_round = model_round

    def group_round(self, party: str) -> int:
        """How far the replicas of the party's group have come: the furthest one that is not away."""
        members = self._roles.group_of(party).parties
        return max(
            (self._standings[member].model_round for member in members if not self._standings[member].is_away),
            default=0,
        )

    def model_round(self, party: str) -> int:
        """How far the party's replica has come."""
        return self._standings[party].model_round

    def present(self) -> tuple[str, ...]:
        """The passive parties that are not away."""
        return tuple(party for party in self._roles.passive if not self._standings[party].is_away)
