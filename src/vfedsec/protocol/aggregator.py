"""The aggregator: it drives, joins shares into an embedding, runs the top model and hands gradients back.

Each of `begin`, `train`, `predict` and `finish` is a program: a generator that yields an `Exchange` and is sent the
`Replies`. It believes no reply that is not authentic; such a one counts as none.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from itertools import count

from vfedsec import trace
from vfedsec.errors import DataError, PartyTimeout
from vfedsec.protocol import messages as m
from vfedsec.protocol.conclusion import Conclusion, RoundInput, RoundOutput, Words
from vfedsec.protocol.dialogue import AggregatorSetup, Dialogue, Program, pause
from vfedsec.protocol.incoming import Incoming
from vfedsec.protocol.interfaces import BatchKind
from vfedsec.protocol.outgoing import Roster
from vfedsec.protocol.schedule import Schedule, one_pass, rounds_planned, training_schedule
from vfedsec.protocol.secure_layer import ShareFormats
from vfedsec.protocol.states import AggregatorState, check_step
from vfedsec.protocol.switchboard import Exchange, Replies, attempt

_MOST_FRUITLESS_PASSES = 20

__all__ = ["Aggregator", "AggregatorSetup", "Program"]


class Aggregator(Dialogue):
    """See the module."""

    def __init__(self, setup: AggregatorSetup) -> None:
        super().__init__(setup)
        formats = ShareFormats(self.job)
        self._incoming = Incoming(self.job, self.roles, formats)
        self._conclusion = Conclusion(self.job, self.roles, formats, setup.top, self._incoming)
        self._top = setup.top
        self._sizes = m.Ready()
        self._last_useful = 0.0
        self._setbacks = 0
        self.evaluations: list[trace.Evaluated] = []
        self.tally = self._conclusion.tally

    # -- programs --

    def begin(self) -> Program:
        """Greet everybody, carry their letters until nobody has any, and have the models built."""
        yield from self._greet(self.roles.parties, AggregatorState.GREETING, everybody=True)
        yield from self._carry_letters()
        requests: dict[str, m.Request] = {party: m.Prepare() for party in self.roles.parties}
        ready = yield from self._insist(AggregatorState.BUILDING, "prepare", requests, m.Ready)
        self._sizes = ready[self.roles.active]
        if not self._sizes.train_batches:
            raise DataError(
                f"no training rows: expected labels in the table of {self.roles.active}, and rows that are left after "
                "the alignment and the split"
            )
        if class_rows := self._incoming.class_rows(self._sizes):
            self._top.balance(class_rows)
        planned = rounds_planned(self.job.training, self._sizes)
        started = (self.job.name, self.job.security.mode, self._sizes.train_batches, planned)
        self._tell(trace.RunStarted(*started))

    def train(self) -> Program:
        """All training rounds with the evaluations between them, and a last pass over the test rows."""
        check_step(self.state, AggregatorState.ROUND)
        yield from self._go_through(training_schedule(self.job, self._sizes))

    def predict(self) -> Program:
        """Passes over all rows without labels, in another order each, until the active party has every prediction.

        Raises `PartyTimeout` when that takes longer than patience lasts, or pass after pass brings nothing.
        """
        check_step(self.state, AggregatorState.ROUND)
        since, predicted, fruitless = self._now, 0, 0
        while predicted < self._sizes.predict_rows:
            self._check_patience(since, self.roles.parties, "so that every row is predicted")
            yield from self._go_through(one_pass("predict", self._round_index, self._sizes.predict_batches))
            last = m.Batch("predict", self._round_index + 1, 0)  # never used: the last outputs ride on its plan
            before, predicted = predicted, (yield from self._plan(last))
            fruitless = 0 if predicted > before else fruitless + 1
            if fruitless == _MOST_FRUITLESS_PASSES:
                raise PartyTimeout(f"{fruitless} passes brought {self.roles.active} no prediction that it lacks")

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
        if batch.kind != "train" and batch.index == 0:
            yield from self._gather(batch)
        roster = self._outgoing.roster()
        if not self._can_go_on(roster):
            yield from self._recover(batch)
            return
        replies = yield from self._round_exchange(schedule, roster)
        given = self._read_round(batch, roster, replies)
        ended = self._conclusion.conclude(given, self._pass_batches(batch.kind))
        self._outgoing.carry = ended.carry
        self._report(batch, ended, self._board.count - before)
        if ended.outcome != "dropped":
            self._last_useful, self._setbacks = self._now, 0
        self._check_patience(self._last_useful, ended.missing, "with anything that can be used")
        schedule.advance()
        if self.roles.active in self._membership.away and schedule.current is not None:
            yield from self._recover(schedule.current)

    def _can_go_on(self, roster: Roster) -> bool:
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
        delay = pause(self._setbacks)
        yield from self._greet(needed, AggregatorState.WAITING, everybody=False, delay=delay)
        yield from self._plan(batch)

    def _round_exchange(self, schedule: Schedule, roster: Roster) -> Program:
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

    def _gather(self, batch: m.Batch) -> Program:
        """Before a pass over held-out rows, greet who is away and have envelopes made for whoever answers: metrics are
        to tell of the network, not of who missed the last training round. Nobody is waited for."""
        away = self._membership.away
        if self.roles.active in away or len(self._outgoing.roster()) == len(self.roles.passive):
            return
        yield from self._plan(batch, greet=away)
        if self._membership.away != away:
            yield from self._plan(batch)  # now the active party is told of the new keys

    def _plan(self, batch: m.Batch, greet: tuple[str, ...] = ()) -> Generator[Exchange, Replies, int]:
        """Have the active party make the envelopes of the next round; of how many rows it has predictions.

        Raises `PartyTimeout` when it does not within patience.
        """
        since, active = self._now, self.roles.active
        for attempts in count(1):
            self._round_index += 1
            requests = self._outgoing.plan(self._round_index, batch)
            self._outgoing.told_active()
            exchange = self._board.exchange("plan", requests, self._round_index, greet=greet)
            replies = yield from self._ask(AggregatorState.ROUND, exchange)
            share = self._read_all(replies, requests, m.Share).get(active)
            self._read_welcomes(replies, greet)
            greet = ()
            if share is not None:
                refusal = attempt(lambda s=share: self._take_riders(active, s))  # type: ignore[misc]
                if refusal is None:
                    return share.predicted
                self._lose(active, refusal, is_gone=True)
            self._check_patience(since, (active,), "with envelopes")
            yield from self._greet((active,), AggregatorState.WAITING, everybody=True, delay=pause(attempts))
        raise AssertionError("the loop above does not end")

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

    def _read_round(self, batch: m.Batch, roster: Roster, replies: Mapping[str, m.Share]) -> RoundInput:
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
        if ended.finished is not None:
            used = self.tally.trained + self.tally.padded
            metrics, rows = ended.finished.metrics(), ended.finished.rows
            event = trace.Evaluated(self._round_index, used, batch.kind, metrics, rows)
            self.evaluations.append(event)
            self._tell(event)

    def _pass_batches(self, kind: BatchKind) -> int:
        return {"validation": self._sizes.validation_batches, "test": self._sizes.test_batches}.get(kind, 0)
