"""The aggregator: it drives, joins shares into an embedding, runs the top model and hands gradients back.

Each of `begin`, `train`, `predict` and `finish` is a program: a generator that yields an `Exchange` and is sent the
`Replies`. It believes no reply that is not authentic; such a one counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vfedsec import trace
from vfedsec.config.digest import job_digest
from vfedsec.config.job import Job
from vfedsec.crypto.keys import Identity, PublicIdentity, RunContext
from vfedsec.errors import DataError, PartyTimeout, RemoteProtocolError
from vfedsec.protocol import messages as m
from vfedsec.protocol.conclusion import Conclusion, RoundInput, RoundOutput, Words
from vfedsec.protocol.incoming import Incoming
from vfedsec.protocol.interfaces import BatchKind, TopModel
from vfedsec.protocol.membership import Membership
from vfedsec.protocol.outgoing import Outgoing
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.schedule import Schedule, one_pass, rounds_planned, training_schedule
from vfedsec.protocol.secure_layer import ShareFormats
from vfedsec.protocol.states import AggregatorState, check_step
from vfedsec.protocol.switchboard import Exchange, Replies, ReplyType, Switchboard, attempt

Program = Generator[Exchange, Replies, Any]

_FIRST_DELAY, _LONGEST_DELAY = 0.05, 5.0


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


class Aggregator:
    """See the module."""

    def __init__(self, setup: AggregatorSetup) -> None:
        job = setup.job
        self.job = job
        self.roles = Roles(job)
        self.state = AggregatorState.START
        self.evaluations: list[trace.Evaluated] = []
        self._tell = setup.sink
        formats = ShareFormats(job)
        self._membership = Membership(job, self.roles)
        self._outgoing = Outgoing(self.roles, self._membership)
        self._incoming = Incoming(job, self.roles, formats)
        self._conclusion = Conclusion(job, self.roles, formats, setup.top, self._incoming)
        self._board = Switchboard(setup.identity, setup.identities, setup.context, job_digest(job), setup.entropy)
        self.tally = self._conclusion.tally
        self._round_index = 0
        self._sizes = m.Ready()
        self._now = 0.0
        self._last_useful = 0.0
        self._setbacks = 0

    # -- programs --

    def begin(self) -> Program:
        """Greet everybody, carry their letters until nobody has any, and have the models built."""
        yield from self._greet(self.roles.parties, AggregatorState.GREETING, everybody=True)
        yield from self._carry_letters()
        requests: dict[str, m.Request] = {party: m.Prepare() for party in self.roles.parties}
        ready = yield from self._insist(AggregatorState.BUILDING, "prepare", requests, m.Ready)
        self._sizes = ready[self.roles.active]
        if not self._sizes.train_batches:
            raise DataError("no training rows are left after the alignment and the split")
        planned = rounds_planned(self.job.training, self._sizes)
        started = (self.job.name, self.job.security.mode, self._sizes.train_batches, planned)
        self._tell(trace.RunStarted(*started))

    def train(self) -> Program:
        """All training rounds with the evaluations between them, and a last pass over the test rows."""
        check_step(self.state, AggregatorState.ROUND)
        yield from self._go_through(training_schedule(self.job.training, self._sizes))

    def predict(self) -> Program:
        """One pass over all rows without labels: the outputs go to the active party alone."""
        check_step(self.state, AggregatorState.ROUND)
        yield from self._go_through(one_pass("predict", self._round_index, self._sizes.predict_batches))
        if self._outgoing.carry.outputs is not None:
            yield from self._plan(m.Batch("predict", 0, 0))  # the last outputs ride on this

    def finish(self, reason: str = "finished") -> Program:
        """Tell everybody that the run is over."""
        check_step(self.state, AggregatorState.FINISHING)
        yield from self._sum_updates()
        requests = self._outgoing.finish(reason, self._round_index)
        exchange = self._board.exchange("finish", requests, self._round_index)
        replies = yield from self._ask(AggregatorState.FINISHING, exchange)
        self._read_all(replies, requests, m.Farewell)
        self._enter(AggregatorState.DONE)
        self._tell(trace.RunEnded(reason, self._round_index))

    # -- rounds --

    def _go_through(self, batches: Iterator[m.Batch]) -> Program:
        schedule = Schedule(batches)
        if schedule.current is not None:
            yield from self._plan(schedule.current)
        while schedule.current is not None:
            yield from self._turn(schedule)

    def _turn(self, schedule: Schedule) -> Program:
        """One mini-batch: one exchange, and one more before it where a group of several has an update to sum."""
        batch = schedule.current
        assert batch is not None
        before = self._board.count
        yield from self._sum_updates()
        roster = self._outgoing.roster()
        if not self._can_go_on(roster):
            yield from self._recover(batch)
            return
        replies = yield from self._round_exchange(schedule, roster)
        given = self._read_round(batch, roster, replies)
        ended = self._conclusion.conclude(given, self._pass_batches(batch.kind))
        self._outgoing.carry = ended.carry
        self._report(batch, ended, self._board.count - before)
        is_lost = ended.outcome == "dropped"
        if not is_lost:
            self._last_useful, self._setbacks = self._now, 0
        schedule.advance(again=is_lost and (batch.kind != "train" or given.active is None))
        if self.roles.active in self._membership.away and schedule.current is not None:
            yield from self._recover(schedule.current)

    def _can_go_on(self, roster: tuple[str, ...]) -> bool:
        if self.job.dropout.policy == "discard" and self._membership.away:
            return False
        return bool(roster) and self.roles.active not in self._membership.away

    def _recover(self, batch: m.Batch) -> Program:
        """Wait for whoever the run cannot go on without, and have new envelopes made.

        Raises `PartyTimeout` too when parties answer, but no round is of use for as long as patience lasts.
        """
        away = self._membership.away
        needed = (self.roles.active,) if self.roles.active in away else away
        self._check_patience(self._last_useful, needed, "with anything that can be used")
        self._setbacks += 1
        delay = _pause(self._setbacks)
        yield from self._greet(needed, AggregatorState.WAITING, everybody=False, delay=delay)
        yield from self._plan(batch)

    def _round_exchange(self, schedule: Schedule, roster: tuple[str, ...]) -> Program:
        batch = schedule.current
        assert batch is not None
        self._round_index += 1
        requests = self._outgoing.round(self._round_index, batch, schedule.following, roster)
        away = self._membership.away
        exchange = self._board.exchange(
            batch.kind, requests, self._round_index, greet=away, training=batch.kind == "train"
        )
        self._outgoing.clear()
        replies = yield from self._ask(AggregatorState.ROUND, exchange)
        shares = self._read_all(replies, requests, m.Share)
        self._read_welcomes(replies, away)
        return shares

    def _plan(self, batch: m.Batch) -> Program:
        """Have the active party make the envelopes of the next round, and wait for it as long as it takes."""
        while True:
            self._round_index += 1
            requests = self._outgoing.plan(self._round_index, batch)
            self._outgoing.told_active()
            exchange = self._board.exchange("plan", requests, self._round_index)
            replies = yield from self._ask(AggregatorState.ROUND, exchange)
            shares = self._read_all(replies, requests, m.Share)
            for active, share in shares.items():
                refusal = attempt(lambda a=active, s=share: self._take_riders(a, s))  # type: ignore[misc]
                if refusal is None:
                    return
                self._lose(active, refusal, is_gone=True)
            yield from self._greet((self.roles.active,), AggregatorState.WAITING, everybody=True)

    def _sum_updates(self) -> Program:
        """(6b): the groups' blinded sums, for their members' next request."""
        requests = self._outgoing.updates()
        if not requests:
            return
        exchange = self._board.exchange("update", requests, self._round_index, training=True)
        replies = yield from self._ask(AggregatorState.UPDATE, exchange)
        shares = self._read_all(replies, requests, m.UpdateShare)
        self._outgoing.take_sums(lambda members, index: self._incoming.sum_of(members, shares, index))

    # -- replies --

    def _read_round(self, batch: m.Batch, roster: tuple[str, ...], replies: Mapping[str, m.Share]) -> RoundInput:
        slices = {party: {self.roles.slice_of(party)} for party in roster}
        slices[self.roles.active] = {index for indices in slices.values() for index in indices}
        shares: dict[str, Words] = {}
        for party, reply in replies.items():
            words = attempt(
                lambda p=party, r=reply: self._accept(  # type: ignore[misc]
                    p, r, slices[p], labelled=batch.kind != "predict"
                )
            )
            if isinstance(words, str):
                self._lose(party, words, is_gone=True)
            else:
                shares[party] = words
        active = replies.get(self.roles.active) if self.roles.active in shares else None
        members = tuple(self._outgoing.members[party] for party in roster)
        return RoundInput(self._round_index, batch, members, shares, active)

    def _accept(self, party: str, reply: m.Share, expected: set[int], *, labelled: bool) -> Words:
        """A share and what rode on it, all of it or nothing."""
        words = self._incoming.shares(party, reply, self._round_index, expected, labelled=labelled)
        self._take_riders(party, reply)
        return words

    def _take_riders(self, party: str, reply: m.Share) -> None:
        """New keys, envelopes and donations that came with a share."""
        if reply.announcement is not None:
            self._board.check(reply.announcement, party)
            if self._membership.announced(party, reply.announcement):
                self._tell(trace.KeyRenewed(self._round_index, party))
        self._outgoing.take_riders(party, reply)

    def _report(self, batch: m.Batch, ended: RoundOutput, exchanges: int) -> None:
        self._tell(
            trace.RoundEnded(
                self._round_index,
                batch.kind,
                batch.epoch,
                ended.outcome,
                ended.loss,
                exchanges,
                ended.missing,
                self._membership.away,
            )
        )
        if ended.evaluated is not None:
            used = self.tally.trained + self.tally.padded
            event = trace.Evaluated(self._round_index, used, batch.kind, ended.evaluated)
            self.evaluations.append(event)
            self._tell(event)

    def _pass_batches(self, kind: BatchKind) -> int:
        return {"validation": self._sizes.validation_batches, "test": self._sizes.test_batches}.get(kind, 0)

    def _read_all(
        self, replies: Replies, requests: Mapping[str, m.Request], expected: type[ReplyType]
    ) -> dict[str, ReplyType]:
        """The authentic replies of the kind asked for; whoever gave none has missed the exchange."""
        read: dict[str, ReplyType] = {}
        for party in requests:
            if party not in replies.received:
                reason = replies.gone.get(party, "no reply before the deadline")
                self._lose(party, reason, is_gone=party in replies.gone)
                continue
            data = replies.received[party]
            reply = attempt(lambda p=party, d=data: self._board.read(p, d, expected))  # type: ignore[misc]
            if isinstance(reply, str):
                self._lose(party, reply, is_gone=True)
            else:
                read[party] = reply
                self._outgoing.confirm(party)
        return read

    def _lose(self, party: str, reason: str, *, is_gone: bool) -> None:
        self._membership.missed(party, is_gone=is_gone)
        self._tell(trace.PartyLost(self._round_index, party, reason))

    # -- greeting and preparation --

    def _greet(
        self, parties: tuple[str, ...], state: AggregatorState, *, everybody: bool, delay: float = 0.0
    ) -> Program:
        """Greet until one of them (or everybody) has answered. Raises `PartyTimeout` when patience ends."""
        since, waiting, attempts = self._now, parties, 0
        while waiting and (everybody or len(waiting) == len(parties)):
            exchange = self._board.exchange("hello", {}, self._round_index, greet=waiting, delay=delay)
            replies = yield from self._ask(state, exchange)
            self._read_welcomes(replies, waiting)
            waiting = tuple(party for party in waiting if not self._membership.is_known(party))
            self._check_patience(since, waiting, "a greeting")
            attempts += 1
            delay = _pause(attempts)

    def _read_welcomes(self, replies: Replies, parties: tuple[str, ...]) -> None:
        for party in parties:
            if party not in replies.received:
                continue
            data = replies.received[party]
            welcome = attempt(lambda p=party, d=data: self._board.welcome(p, d))  # type: ignore[misc]
            if isinstance(welcome, str):
                self._lose(party, welcome, is_gone=True)
            else:
                self._membership.welcomed(party, welcome.announcement, welcome.model_round)
                if self._round_index:
                    self._tell(trace.PartyReturned(self._round_index, party))

    def _check_patience(self, since: float, waiting: tuple[str, ...], what: str) -> None:
        if waiting and self._now - since > self.job.dropout.patience:
            raise PartyTimeout(
                f"{', '.join(waiting)} did not answer {what} within {self.job.dropout.patience:g} s (dropout.patience)"
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
        while boxes:
            requests: dict[str, m.Request] = {
                party: m.Deliver(letters, self._outgoing.tell(party)) for party, letters in boxes.items()
            }
            mail = yield from self._insist(AggregatorState.PREPARING, "mail", requests, m.Mail)
            boxes = {}
            for party, reply in mail.items():
                for letter in reply.letters:
                    self._check_address(party, letter)
                    boxes.setdefault(letter.receiver, []).append(letter)

    def _check_address(self, party: str, letter: m.Letter) -> None:
        if letter.sender != party or letter.receiver not in self.roles.partners(party):
            raise RemoteProtocolError(f"{party} cannot post a letter from {letter.sender!r} to {letter.receiver!r}")

    # -- steps --

    def _ask(self, state: AggregatorState, exchange: Exchange) -> Generator[Exchange, Replies, Replies]:
        self._enter(state)
        replies = yield exchange
        self._now = replies.now
        return replies

    def _enter(self, state: AggregatorState) -> None:
        check_step(self.state, state)
        self.state = state


def _pause(attempts: int) -> float:
    """Seconds before the next greeting: longer every time, up to a limit; none before the first."""
    return min(_FIRST_DELAY * 2.0 ** min(attempts - 1, 30), _LONGEST_DELAY) if attempts else 0.0
