"""What the aggregator says to whom: the requests of a round, of an update, and of the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from vfedsec.crypto.keys import Announcement
from vfedsec.protocol import messages as m
from vfedsec.protocol.interfaces import Floats
from vfedsec.protocol.membership import Membership
from vfedsec.protocol.replicas import Replicas
from vfedsec.protocol.roles import Roles


@dataclass
class Carry:
    """What a round leaves for the next requests to bring."""

    round_index: int = 0
    gradient: Floats | None = None
    active_knows: bool = False
    """Whether the active party has had the gradient already, in a request without a batch."""
    forwarded: tuple[m.Member, ...] = ()
    """Whose slices were used."""
    summed: bool = False
    """Whether the groups have been asked for their updates."""
    outputs: Floats | None = None


Roster = Mapping[str, list[m.BlindSum]]
"""The passive parties that take part in a round, and the sums that bring each one's replica up to date."""


class Outgoing:
    """Requests, made from what the last round left and from who is there."""

    def __init__(self, roles: Roles, membership: Membership) -> None:
        self._roles = roles
        self._membership = membership
        self._replicas = Replicas(roles, membership)
        self.carry = Carry()
        self.envelopes: dict[str, m.Envelope] = {}
        self.members: dict[str, m.Member] = {}
        """The keys of the last round's roster."""
        self._news: dict[str, list[Announcement]] = {}
        self._donors: dict[str, str] = {}
        """By receiver: the peer that was asked for its model this round."""

    def roster(self) -> Roster:
        """The passive parties that can take part: they answer, have an envelope, and their replica is current or can
        be brought up to date."""
        present = (party for party in self._membership.present() if party in self.envelopes)
        sums = {party: self._replicas.sums_for(party) for party in present}
        return {party: chain for party, chain in sums.items() if chain is not None}

    def plan(self, round_index: int, next_batch: m.Batch) -> dict[str, m.Request]:
        """For the active party: make the envelopes of the next round, whose batch this is."""
        active = self._roles.active
        return {
            active: m.Round(
                round_index,
                next_batch=next_batch,
                roster=[self._membership.member(active)],
                announcements=self.tell(active),
                gradient=self._whole_gradient(),
                outputs=_raw(self.carry.outputs),
            )
        }

    def round(
        self, round_index: int, batch: m.Batch, next_batch: m.Batch | None, roster: Roster
    ) -> dict[str, m.Request]:
        """For everybody in the roster and the active party: one mini-batch."""
        active = self._roles.active
        members = {party: self._membership.member(party) for party in (active, *roster)}
        self.members = members
        requests: dict[str, m.Request] = {
            active: m.Round(
                round_index,
                batch,
                next_batch,
                list(members.values()),
                self.tell(active),
                self._whole_gradient(),
                outputs=_raw(self.carry.outputs),
            )
        }
        receivers = self._receivers(roster)
        self._donors = {one.party: donor for donor, asked in receivers.items() for one in asked}
        for party, sums in roster.items():
            sharing = (active, *self._roles.sharing(self._roles.slice_of(party)))
            requests[party] = m.Round(
                round_index,
                batch,
                roster=[members[other] for other in sharing if other in members],
                announcements=self.tell(party),
                gradient=self._gradient_for(party),
                updates=sums,
                envelope=self.envelopes[party],
                donate_to=receivers.get(party, []),
                donation=self._replicas.letter_for(party),
            )
        return requests

    def updates(self) -> dict[str, m.Request]:
        """For the members of groups of several whose embedding was used: their gradient, once."""
        if self.carry.summed:
            return {}
        return {
            member.party: m.Update(self.carry.round_index, members, self._slice_of_gradient(member.party))
            for members in self._summing().values()
            for member in members
        }

    def _summing(self) -> dict[str, list[m.Member]]:
        """By group of several, the members whose embedding was used. A group of three or more sums no single gradient:
        the others would learn whose it is."""
        groups: dict[str, list[m.Member]] = {}
        for member in self.carry.forwarded:
            if self._roles.is_replicated(member.party):
                groups.setdefault(self._roles.group_of(member.party).name, []).append(member)
        sizes = {group.name: len(group.parties) for group in self._roles.groups}
        return {name: members for name, members in groups.items() if len(members) > 1 or sizes[name] == 2}

    def finish(self, reason: str, round_index: int) -> dict[str, m.Request]:
        """For everybody who is there: the end, and what the last round left."""
        requests: dict[str, m.Request] = {}
        for party in self._membership.present():
            sums = self._replicas.sums_for(party) or []
            requests[party] = m.Finish(reason, round_index, self._gradient_for(party), sums)
        requests[self._roles.active] = m.Finish(
            reason, round_index, self._whole_gradient(), outputs=_raw(self.carry.outputs)
        )
        return requests

    def confirm(self, party: str) -> None:
        """The party answered this request, so it has what the request brought."""
        self._membership.answered(party)
        self._membership.confirm_news(party, self._news.pop(party, []))

    def tell(self, party: str) -> list[Announcement]:
        """The keys a party has yet to hear of."""
        news = self._news[party] = self._membership.news_for(party)
        return news

    def clear(self) -> None:
        """Forget what the requests just made have used up."""
        self.carry = Carry(self.carry.round_index)
        self.envelopes.clear()
        self._replicas.donations.clear()

    def told_active(self) -> None:
        """The active party has been told what the last round left; the others have yet to be."""
        self.carry.active_knows = True
        self.carry.outputs = None

    def check_claim(self, party: str, model_round: int) -> None:
        """Raises `RemoteProtocolError` for a replica that claims to be further than its group was ever brought."""
        self._replicas.check_claim(party, model_round)

    def take_riders(self, party: str, reply: m.Share) -> None:
        """Envelopes and donations, for the next round."""
        if party == self._roles.active:
            for receiver, envelope in reply.envelopes.items():
                if receiver in self._roles.passive and self._membership.holds(receiver, envelope.receiver_key_id):
                    self.envelopes[receiver] = envelope
        self.check_claim(party, reply.model_round)
        self._membership.reached(party, reply.model_round)
        for letter in reply.donations:
            if letter.sender == party == self._donors.get(letter.receiver):
                self._replicas.donations[letter.receiver] = (letter, reply.model_round)

    def take_sums(self, sum_of: Callable[[list[str], int], memoryview | None]) -> None:
        """Keep the blinded sum of every group all of whose members gave their share."""
        for name, members in self._summing().items():
            words = sum_of([member.party for member in members], self.carry.round_index)
            if words is not None:
                self._replicas.add(name, members, self.carry.round_index, words)
        self.carry.summed = True

    def _receivers(self, roster: Roster) -> dict[str, list[m.Member]]:
        """Which member gives its model to which of its group that has fallen behind."""
        receivers: dict[str, list[m.Member]] = {}
        for party in self._membership.present():
            if party in roster or self._replicas.sums_for(party) is not None:
                continue
            group = self._roles.group_of(party).parties
            donor = next((member for member in roster if member in group), None)
            if donor is not None:
                receivers.setdefault(donor, []).append(self._membership.member(party))
        return receivers

    def _whole_gradient(self) -> memoryview | None:
        return None if self.carry.active_knows else _raw(self.carry.gradient)

    def _gradient_for(self, party: str) -> memoryview | None:
        has_used = party in [member.party for member in self.carry.forwarded]
        if self.carry.gradient is None or not has_used or self._roles.is_replicated(party):
            return None
        return self._slice_of_gradient(party)

    def _slice_of_gradient(self, party: str) -> memoryview:
        assert self.carry.gradient is not None
        columns = self._roles.slices[self._roles.slice_of(party)]
        return np.ascontiguousarray(self.carry.gradient[:, columns], "<f4").data


def _raw(array: Floats | None) -> memoryview | None:
    return None if array is None else np.ascontiguousarray(array, "<f4").data
