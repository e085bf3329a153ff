"""How members of a group of several get back to where their group's model is.

The aggregator keeps the last blinded sums of each group. A member that missed some gets the very same sums again and
takes the same steps as its peers did; one that missed more, or lost its model, gets the model from a peer.
"""

from __future__ import annotations

from collections import deque

from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.membership import Membership
from vfedsec.protocol.messages import BlindSum, Letter, Member
from vfedsec.protocol.roles import Roles

_SUMS_KEPT = (
    4  # as many as there can be while a member is away for a round: it is back in the roster three rounds later
)


class Replicas:
    """The last sums of every group, and the models on their way from member to member."""

    def __init__(self, roles: Roles, membership: Membership) -> None:
        self._roles = roles
        self._membership = membership
        self._sums: dict[str, deque[BlindSum]] = {
            group.name: deque(maxlen=_SUMS_KEPT) for group in roles.groups if len(group.parties) > 1
        }
        self.donations: dict[str, tuple[Letter, int]] = {}
        """By receiver: the letter, and the round of the model in it."""

    def check_claim(self, party: str, model_round: int) -> None:
        """Raises `RemoteProtocolError` for a replica that claims to be further than its group was ever brought."""
        if self._roles.is_replicated(party):
            sums = self._sums[self._roles.group_of(party).name]
            furthest = sums[-1].round_index if sums else 0
            if model_round > furthest:
                raise RemoteProtocolError(
                    f"{party} cannot have the model of round {model_round}: the last update is of round {furthest}"
                )

    def add(self, group: str, members: list[Member], round_index: int, words: memoryview) -> None:
        """A new sum; it continues from where the group is."""
        base = self._membership.group_round(members[0].party)
        self._sums[group].append(BlindSum(round_index, base, members, words))

    def sums_for(self, party: str) -> list[BlindSum] | None:
        """What brings this party's model to where its group is; none for a party without peers, and None if the sums
        that are kept do not reach back far enough."""
        if not self._roles.is_replicated(party):
            return []
        _, here = self.donations.get(party, (None, self._membership.model_round(party)))
        goal = self._membership.group_round(party)
        chain = []
        for one in self._sums[self._roles.group_of(party).name]:
            if one.base_round == goal:
                goal = one.round_index  # made, and known to none of those present
            if one.base_round == here:
                chain.append(one)
                here = one.round_index
        return chain if here == goal else None

    def letter_for(self, party: str) -> Letter | None:
        """The model a peer gave for this party."""
        return self.donations[party][0] if party in self.donations else None
