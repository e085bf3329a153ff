"""How the aggregator speaks with parties: it asks, reads what is authentic, greets who is away, and carries letters.

A reply that is not authentic, or not of the kind asked for, counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from vfedsec import trace
from vfedsec.config.digest import job_digest
from vfedsec.config.job import Job
from vfedsec.crypto.keys import Identity, PublicIdentity, RunContext
from vfedsec.errors import PartyTimeout, RemoteProtocolError
from vfedsec.protocol import messages as m
from vfedsec.protocol.interfaces import TopModel
from vfedsec.protocol.membership import Membership
from vfedsec.protocol.outgoing import Outgoing
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.states import AggregatorState, check_step
from vfedsec.protocol.switchboard import Exchange, Replies, ReplyType, Switchboard, attempt

Program = Generator[Exchange, Replies, Any]

_NO_REPLY = "no reply before the deadline"
_FIRST_DELAY, _LONGEST_DELAY = 0.05, 5.0
_MOST_DELIVERIES = 10_000
"""For each passive party. In a delivery one that is alone compares 10,000 rows or more, one of many its share of them:
so tables of a hundred million rows can be aligned, and letters without end are refused."""


@dataclass(frozen=True, kw_only=True)
class AggregatorSetup:
    """What an aggregator is made of. Everything random in it comes from the engine."""

    job: Job
    top: TopModel
    identity: Identity
    identities: Mapping[str, PublicIdentity]
    context: RunContext
    entropy: Callable[[int], bytes]
    sink: trace.Sink = trace.ignore


class Dialogue:
    """The speaking part of the aggregator."""

    def __init__(self, setup: AggregatorSetup) -> None:
        self.job = setup.job
        self.roles = Roles(setup.job)
        self.state = AggregatorState.START
        self._tell = setup.sink
        self._membership = Membership(setup.job, self.roles)
        self._outgoing = Outgoing(self.roles, self._membership)
        self._board = Switchboard(setup.identity, setup.identities, setup.context, job_digest(setup.job), setup.entropy)
        self._aligning: dict[str, trace.Aligning] = {}
        self._reasons: dict[str, str] = {}  # why a party was lost first, since it answered last
        self._round_index = 0
        self._now = 0.0

    def _ask(self, state: AggregatorState, exchange: Exchange) -> Generator[Exchange, Replies, Replies]:
        self._enter(state)
        replies = yield exchange
        self._now = replies.now
        return replies

    def _enter(self, state: AggregatorState) -> None:
        check_step(self.state, state)
        self.state = state

    def _read_all(
        self, replies: Replies, requests: Mapping[str, m.Request], expected: type[ReplyType]
    ) -> dict[str, ReplyType]:
        """The authentic replies of the kind asked for; whoever gave none has missed the exchange."""
        read: dict[str, ReplyType] = {}
        for party in requests:
            if party not in replies.received:
                reason = replies.gone.get(party, _NO_REPLY)
                self._lose(party, reason, is_gone=party in replies.gone)
                continue
            data = replies.received[party]
            reply = attempt(lambda p=party, d=data: self._board.read(p, d, expected))  # type: ignore[misc]
            if isinstance(reply, str):
                self._lose(party, reply, is_gone=True)
            else:
                read[party] = reply
                self._reasons.pop(party, None)
                self._outgoing.confirm(party)
        return read

    def _lose(self, party: str, reason: str, *, is_gone: bool) -> None:
        self._reasons.setdefault(party, reason)
        self._membership.missed(party, is_gone=is_gone)
        self._tell(trace.PartyLost(self._round_index, party, reason))

    # -- greeting and preparation --

    def _greet(
        self, parties: tuple[str, ...], state: AggregatorState, *, everybody: bool, delay: float = 0.0
    ) -> Program:
        """Greet until one of them (or everybody) has answered. Raises `PartyTimeout` when patience ends."""
        since, waiting, attempts = self._now, parties, 0
        while waiting and (everybody or len(waiting) == len(parties)):
            if state is AggregatorState.WAITING:
                self._round_index += 1  # so that keys made for this greeting are newer than all before
            exchange = self._board.exchange("hello", {}, self._round_index, greet=waiting, delay=delay)
            replies = yield from self._ask(state, exchange)
            self._read_welcomes(replies, waiting)
            waiting = tuple(party for party in waiting if not self._membership.is_known(party))
            self._check_patience(since, waiting, "a greeting")
            attempts += 1
            delay = pause(attempts)

    def _read_welcomes(self, replies: Replies, parties: tuple[str, ...]) -> None:
        for party in parties:
            if party not in replies.received:
                self._reasons.setdefault(party, replies.gone.get(party, _NO_REPLY))
                continue
            data = replies.received[party]
            welcome = attempt(lambda p=party, d=data: self._welcome(p, d))  # type: ignore[misc]
            if isinstance(welcome, str):
                self._lose(party, welcome, is_gone=True)
            elif self._round_index:
                self._tell(trace.PartyReturned(self._round_index, party))

    def _welcome(self, party: str, data: bytes) -> m.Welcome:
        welcome = self._board.welcome(party, data)
        self._outgoing.check_claim(party, welcome.model_round)
        self._reasons.pop(party, None)
        self._membership.welcomed(party, welcome.announcement, welcome.model_round)
        return welcome

    def _check_patience(self, since: float, waiting: tuple[str, ...], what: str) -> None:
        if waiting and self._now - since > self.job.dropout.patience:
            # A party that refuses what another sent it is not the one to blame.
            reasons = dict.fromkeys(self._reasons.get(party, _NO_REPLY) for party in waiting)
            raise PartyTimeout(
                f"{', '.join(waiting)} did not answer {what} within {self.job.dropout.patience:g} s (dropout.patience):"
                f" {'; '.join(reasons)}"
            )

    def _insist(
        self,
        state: AggregatorState,
        kind: str,
        requests: Mapping[str, m.Request],
        expected: type[ReplyType],
    ) -> Generator[Exchange, Replies, dict[str, ReplyType]]:
        """Ask until everybody has answered: the same bytes again, so that nobody does anything twice."""
        exchange = self._board.exchange(kind, requests, self._round_index)
        since = self._now
        read: dict[str, ReplyType] = {}
        while True:
            replies = yield from self._ask(state, exchange)
            missing = {party: requests[party] for party in exchange.requests}
            read |= self._read_all(replies, missing, expected)
            waiting = tuple(party for party in missing if party not in read)
            if not waiting:
                return read
            self._check_patience(since, waiting, f"the {kind}")
            exchange = exchange.again(waiting, _LONGEST_DELAY)

    def _carry_letters(self) -> Program:
        boxes: dict[str, list[m.Letter]] = {party: [] for party in self.roles.parties}
        most = _MOST_DELIVERIES * len(self.roles.passive)
        for _ in range(most):
            if not boxes:
                return
            requests: dict[str, m.Request] = {
                party: m.Deliver(letters, self._outgoing.tell(party)) for party, letters in boxes.items()
            }
            mail = yield from self._insist(AggregatorState.PREPARING, "mail", requests, m.Mail)
            boxes = {}
            for party, reply in mail.items():
                self._tell_aligning(party, reply)
                for letter in reply.letters:
                    self._check_address(party, letter)
                    boxes.setdefault(letter.receiver, []).append(letter)
        raise RemoteProtocolError(f"{', '.join(boxes)} still get letters after {most} deliveries")

    def _tell_aligning(self, party: str, reply: m.Mail) -> None:
        event = trace.Aligning(party, reply.rows_aligned, reply.rows_to_align)
        if event.total and event != self._aligning.get(party):
            self._aligning[party] = event
            self._tell(event)

    def _check_address(self, party: str, letter: m.Letter) -> None:
        if letter.sender != party or letter.receiver not in self.roles.partners(party):
            raise RemoteProtocolError(f"{party} cannot post a letter from {letter.sender!r} to {letter.receiver!r}")


def pause(attempts: int) -> float:
    """Seconds before the next greeting: longer every time, up to a limit; none before the first."""
    return min(_FIRST_DELAY * 2.0 ** min(attempts - 1, 30), _LONGEST_DELAY) if attempts else 0.0
