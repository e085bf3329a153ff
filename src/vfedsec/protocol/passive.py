"""A passive party: columns about some of the rows, and no labels.

Steps in parentheses are those of the paper's pipeline: (1) batch selection, (2) bottom model, (3) quantization,
(4) masking, (5) gradient, (6) update; (6a) to (6c) where several parties hold the group's columns.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np

from vfedsec.crypto.pairs import derive
from vfedsec.errors import LocalProtocolError, RemoteProtocolError
from vfedsec.protocol import states
from vfedsec.protocol.interfaces import BatchKind, Rows
from vfedsec.protocol.messages import (
    UNREADABLE,
    BlindSum,
    Farewell,
    Finish,
    Letter,
    Member,
    Round,
    Share,
    Update,
    UpdateShare,
)
from vfedsec.protocol.party import Party, PartySetup
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.seats import Seat
from vfedsec.protocol.secure_layer import GroupBlinds

_GROUP = "group"
_DONATION = "donation"
_SECRET_BYTES = 32
_NO_ROUND = -1


def envelope_of(kind: BatchKind) -> str:
    """The purpose of envelopes for batches of a kind: under another one they do not open."""
    return f"envelope {kind}"


class Donation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a member that comes back needs from a peer; travels sealed."""

    model_round: int
    group_secret: bytes
    state: bytes

    def __repr__(self) -> str:
        return f"Donation(model_round={self.model_round}, group_secret=<redacted>, state=<redacted>)"


class PassiveParty(Party):
    """See the module."""

    TRANSITIONS: ClassVar = states.PASSIVE_TRANSITIONS

    def __init__(self, setup: PartySetup, *, restarted: bool = False) -> None:
        roles = Roles(setup.job)
        self.group = roles.group_of(setup.name)
        self.slice_index = roles.slice_of(setup.name)
        self._width = roles.slice_width(self.slice_index)
        self._is_replicated = roles.is_replicated(setup.name)
        self._group_secret = b""
        # A replica that was restarted draws any weights, and says that they are of no round.
        self._group_seed = derive(setup.private_seed, "placeholder") if restarted else b""
        self._blinds: GroupBlinds | None = None
        self._forwarded_round = 0
        self._blinded = (_NO_ROUND, b"")
        """The last round whose update it gave a share to, and under which key."""
        super().__init__(setup, restarted=restarted)
        if restarted and self._is_replicated:
            self.model_round = _NO_ROUND

    # -- preparation: what only the group knows --

    def _first_letters(self) -> list[Letter]:
        leader, *others = self.group.parties
        if not others or self.name != leader:
            return []
        self._group_secret = self._setup.entropy(_SECRET_BYTES)
        self._group_seed = derive(self._setup.private_seed, "model", self.group.name)
        body = self._group_secret + self._group_seed
        return [self._letters.seal(other, _GROUP, body) for other in others]

    def _read_letter(self, letter: Letter) -> list[Letter]:
        if letter.purpose != _GROUP:
            return super()._read_letter(letter)
        body = self._letters.open(letter)
        if letter.sender != self.group.parties[0] or len(body) != 2 * _SECRET_BYTES:
            raise RemoteProtocolError(f"{self.name} cannot accept a group secret from {letter.sender}")
        self._group_secret, self._group_seed = body[:_SECRET_BYTES], body[_SECRET_BYTES:]
        return []

    def _model_seed(self) -> bytes:
        if not self._is_replicated:
            return derive(self._setup.private_seed, "model", self.group.name)
        if not self._group_seed:
            raise LocalProtocolError(f"{self.name} cannot build its model: no group secret has come")
        return self._group_seed

    # -- forward --

    def _round(self, message: Round) -> Share:
        if self.model_round == _NO_ROUND and message.donation is None:
            raise RemoteProtocolError(f"{self.name} cannot take part: it was restarted and has no model")
        seat, rows = self.secure.timed(self._sit_and_open, message)  # (1)
        self._take_results(message)
        training = message.batch is not None and message.batch.kind == "train"
        embedding = self.model.forward(rows, training=training)  # (2)
        words = self.secure.share(embedding, message.round_index, self.slice_index, seat.pairs.values())  # (3), (4)
        self._forwarded_round = message.round_index
        return Share(
            message.round_index,
            {self.slice_index: words.data},
            self.model_round,
            announcement=self._announce_if_due(message.round_index, seat.own_key_id),
            donations=self._donations(message.donate_to, seat.own_key_id),
        )

    def _sit_and_open(self, message: Round) -> tuple[Seat, Rows]:
        seat = self._seats.take("round", message.roster, message.announcements)
        self._check_key_in_use(seat.own_key_id)
        if self.roles.active not in seat.pairs:  # its group's sum would stand bare
            raise RemoteProtocolError(f"{self.name} cannot accept a roster without {self.roles.active}")
        return seat, self._open_envelope(message)

    def _open_envelope(self, message: Round) -> Rows:
        envelope = message.envelope
        if message.batch is None or envelope is None or envelope.round_index != message.round_index:
            raise RemoteProtocolError(f"{self.name} cannot take part in round {message.round_index}: no envelope")
        ends = (self.roles.active, envelope.sender_key_id, envelope.receiver_key_id)
        seal = self._keys.pair(*ends).incoming(envelope_of(message.batch.kind))
        body = seal.open(envelope.round_index, envelope.sealed)
        if len(body) != 4 * self.roles.batch_size:
            raise RemoteProtocolError(f"{self.name} cannot use an envelope of {len(body)} bytes")
        return np.frombuffer(body, "<i4")

    # -- backward --

    def _take_results(self, message: Round | Finish) -> None:
        """What the last round brought: a gradient (5), or the group's summed update (6c), or the state of a peer."""
        if isinstance(message, Round) and message.donation is not None:
            self._accept(message.donation)
        if message.gradient is not None:
            if self._is_replicated:
                raise RemoteProtocolError(f"{self.name} cannot step alone: its group has several parties")
            gradient = self._read_gradient(message.gradient, self._width)
            self._step(gradient, self._forwarded_round)  # (6)
        for update in message.updates:
            self._apply_sum(update)
        self._forget_pending()

    def _update(self, message: Update) -> UpdateShare:
        """(6a): the parameter gradient of the own rows, blinded."""
        if not self._is_replicated:
            raise RemoteProtocolError(f"{self.name} cannot accept an update: it is not one of several")
        if message.round_index != self._forwarded_round:
            raise RemoteProtocolError(
                f"{self.name} cannot update for round {message.round_index}: its last is {self._forwarded_round}"
            )
        seat = self._seats.take("update", message.members, [])
        if not seat.pairs.keys() <= set(self.group.parties):
            raise RemoteProtocolError(f"{self.name} cannot update with parties of other groups")
        if not seat.pairs and len(self.group.parties) > 2:
            raise RemoteProtocolError(f"{self.name} cannot update alone: its peers would learn its gradient")
        gradient = self.model.backward(self._read_gradient(message.gradient, self._width))
        blind = self._group_blinds().of(self.name, seat.own_key_id)
        self._blinded = (message.round_index, seat.own_key_id)
        words = self.secure.blind(gradient, message.round_index, seat.pairs.values(), blind)
        return UpdateShare(message.round_index, words.data)

    def _apply_sum(self, update: BlindSum) -> None:
        """(6c): the same step in every replica. One that this replica has taken is passed over: the aggregator need
        not know. One that does not continue from the state this replica is in is refused."""
        if self._is_replicated and update.round_index <= self.model_round:
            return
        if not self._is_replicated or update.base_round != self.model_round:
            raise RemoteProtocolError(
                f"{self.name} cannot apply the update of round {update.round_index} onto round {update.base_round}: "
                f"its model is of round {self.model_round}"
            )
        self._check_members(update)
        streams = self._group_blinds()
        blinds = (streams.of(member.party, member.key_id) for member in update.members)  # none for words that misfit
        total = self.secure.unblind(update.words, self.model.size, update.round_index, blinds)
        streams.forget_all_but(2 * len(self.group.parties))
        self.model.apply(total)
        self.model_round = update.round_index

    def _check_members(self, update: BlindSum) -> None:
        """Raises `RemoteProtocolError` unless the sum can be one of this group, with its own share if it gave one."""
        names = [member.party for member in update.members]
        round_index, own_key_id = self._blinded
        is_own = update.round_index == round_index
        if (
            not names
            or len(set(names)) != len(names)
            or set(names) - set(self.group.parties)
            or (len(names) == 1 and len(self.group.parties) > 2)
            or (is_own and Member(self.name, own_key_id) not in update.members)
        ):
            raise RemoteProtocolError(f"{self.name} cannot apply a sum of {names} that its group did not make")

    def _group_blinds(self) -> GroupBlinds:
        if not self._group_secret:  # blinds without a secret are known to all
            raise RemoteProtocolError(f"{self.name} cannot read a sum of its group: it has lost the group's secret")
        context, scratch = self._keys.context, self.secure.scratch
        if self._blinds is None or self._blinds.context != context:
            self._blinds = GroupBlinds(self._group_secret, context, self.group.name, scratch)
        return self._blinds

    # -- state from member to member --

    def _donations(self, receivers: list[Member], own_key_id: bytes) -> list[Letter]:
        """The own model and the group's secret, for each of these peers."""
        if not receivers:
            return []
        peers = set(self.group.parties) - {self.name}
        names = [member.party for member in receivers]
        if not set(names) <= peers or len(set(names)) != len(names):
            raise RemoteProtocolError(f"{self.name} cannot give its model to {names}: not each a peer of its group")
        donation = Donation(self.model_round, self._group_secret, self.model.dump())
        body = msgspec.msgpack.encode(donation)
        return [self._letters.seal(one.party, _DONATION, body, own_key_id, one.key_id) for one in receivers]

    def _accept(self, letter: Letter) -> None:
        if letter.purpose != _DONATION or letter.sender not in self.group.parties:
            raise RemoteProtocolError(f"{self.name} cannot take a model from {letter.sender!r}")
        try:
            donation = msgspec.msgpack.decode(self._letters.open(letter), type=Donation)
        except UNREADABLE as error:
            raise RemoteProtocolError(f"{self.name} cannot read the model of {letter.sender}: {error}") from None
        if donation.model_round <= self.model_round:
            return  # it has got there by itself
        if donation.model_round >= self._last_round or len(donation.group_secret) != _SECRET_BYTES:
            raise RemoteProtocolError(f"{self.name} cannot take a model of round {donation.model_round}")
        if self._group_secret and donation.group_secret != self._group_secret:
            raise RemoteProtocolError(f"{self.name} cannot take a model with another secret than that of its group")
        self.model.load(donation.state)
        self.model_round = donation.model_round
        self._group_secret = donation.group_secret

    def _finish(self, message: Finish) -> Farewell:
        self._take_results(message)
        return Farewell()
