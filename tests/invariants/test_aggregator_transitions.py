"""Every state of the aggregator, and every reply: what is not well formed counts as none."""

from itertools import product

import msgspec
import numpy as np
import pytest

from federation import ACTIVE, Federation, job_of
from vfedsec import trace
from vfedsec.crypto.keys import EphemeralKey, RunContext, announce
from vfedsec.engines.faults import Fault
from vfedsec.errors import LocalProtocolError
from vfedsec.protocol import messages as m
from vfedsec.protocol import session
from vfedsec.protocol.session import parse
from vfedsec.protocol.states import (
    AGGREGATOR_TRANSITIONS,
    AggregatorState,
    check_step,
)

MEMBER = "a0"


@pytest.mark.parametrize(("state", "following"), list(product(AggregatorState, repeat=2)))
def test_every_step_of_the_aggregator_is_in_the_table_or_an_error(state, following):
    if following in AGGREGATOR_TRANSITIONS[state]:
        check_step(state, following)
    else:
        with pytest.raises(LocalProtocolError, match=f"cannot go from '{state.value}' to '{following.value}'"):
            check_step(state, following)


def test_every_state_of_the_aggregator_is_in_the_table_and_reached():
    assert set(AGGREGATOR_TRANSITIONS) == set(AggregatorState)
    reached = {target for targets in AGGREGATOR_TRANSITIONS.values() for target in targets}
    assert reached == set(AggregatorState) - {AggregatorState.START}


KINDS = {
    AggregatorState.GREETING: "hello",
    AggregatorState.PREPARING: "mail",
    AggregatorState.BUILDING: "prepare",
    AggregatorState.ROUND: "train",
    AggregatorState.UPDATE: "update",
    AggregatorState.WAITING: "hello",
    AggregatorState.FINISHING: "finish",
}
EXPECTED = {
    "hello": "Welcome",
    "mail": "Mail",
    "prepare": "Ready",
    "train": "Share",
    "update": "UpdateShare",
    "finish": "Farewell",
}


def reply_of(kind, party, context):
    """Some reply of this type."""
    stranger = EphemeralKey(bytes(range(32)), 0)
    return {
        "Welcome": m.Welcome(announce(party._setup.identity, context, party.name, stranger), 0, "0.1.0"),
        "Mail": m.Mail([]),
        "Ready": m.Ready(3, 3, 3, 3),
        "Share": m.Share(1, {0: memoryview(bytes(256))}),
        "UpdateShare": m.UpdateShare(1, memoryview(bytes(64))),
        "Farewell": m.Farewell(),
    }[kind]


class Replacing(Federation):
    """One party's first reply in one state is another authentic one."""

    def __init__(self, state, name, make, *, watched=True):
        super().__init__(job_of(rounds=4), watched=watched)
        self.state, self.name, self.make = state, name, make
        self.replaced = False
        self.script.reply = self.reply
        self.script.strike = self.strike

    def strike(self, exchange, party):
        """The active party is lost once, so that the aggregator has to wait for it."""
        lost = self.state is AggregatorState.WAITING and exchange.kind == "train" and party == ACTIVE
        return Fault.GONE if lost and not self.of_type(trace.PartyLost) else Fault.NONE

    def reply(self, exchange, party, data):
        aggregator = self.simulation.aggregator
        if (
            self.replaced
            or party != self.name
            or aggregator.state is not self.state
            or exchange.kind != KINDS[self.state]
        ):
            return data
        self.replaced = True
        handler, number = self.parties[party], parse(data).exchange
        message = self.make(handler, aggregator._board.context)
        if exchange.kind == "hello":
            identity, request = handler._setup.identity, exchange.requests[party]
            return session.sign(identity, number, message, answering=request)
        return handler._channel.protect(number, message)

    def run(self):
        self.simulation.train()
        self.simulation.finish()
        assert self.replaced
        assert self.simulation.aggregator.state is AggregatorState.DONE
        return [event.party for event in self.of_type(trace.PartyLost)]


def wrong_replies():
    for state, kind in KINDS.items():
        for reply in set(EXPECTED.values()) - {EXPECTED[kind]}:
            for name in (ACTIVE, MEMBER) if state is not AggregatorState.WAITING else (ACTIVE,):
                if state is not AggregatorState.UPDATE or name == MEMBER:
                    yield pytest.param(state, name, reply, id=f"{state.value}-{name}-{reply}")


@pytest.mark.parametrize(("state", "name", "reply"), sorted(wrong_replies(), key=lambda case: case.id))
def test_a_reply_of_another_type_counts_as_none_in_every_state_of_the_aggregator(state, name, reply):
    lost = Replacing(state, name, lambda party, context: reply_of(reply, party, context)).run()
    assert name in lost


def share_of(party, slices=None, **changes):
    """A share of the first training round that is well formed but for the changes."""
    is_active = party.name == ACTIVE
    bare = {index: memoryview(bytes(256)) for index in range(2 if is_active else 1)}
    fields = {"labels": memoryview(bytes(64)), "valid": 16} if is_active else {}
    return m.Share(**({"round_index": 2, "slices": bare | (slices or {})} | fields | changes))


def rider(signed_for=None, context=None):
    """A share that is well formed but for the key that rides on it."""

    def make(party, own_context):
        key = EphemeralKey(bytes(range(32)), 1)
        rides = announce(party._setup.identity, context or own_context, signed_for or party.name, key)
        return share_of(party, announcement=rides)

    return make


ODD_SHARES = {
    "another round": lambda party, context: share_of(party, round_index=99),
    "no slice": lambda party, context: msgspec.structs.replace(share_of(party), slices={}),
    "another slice": lambda party, context: share_of(party, {7: memoryview(bytes(256))}),
    "a short slice": lambda party, context: share_of(party, {0: memoryview(bytes(255))}),
    "a key signed for another party": rider(signed_for="b0"),
    "a key signed for another run": rider(context=RunContext(b"x", 0)),
    "a key with a forged signature": lambda party, context: share_of(
        party, announcement=m.Announcement(party.name, 1, bytes(range(32)), bytes(64))
    ),
}


@pytest.mark.parametrize("name", [ACTIVE, MEMBER])
def test_a_share_that_is_well_formed_counts(name):
    """So that each of those below is refused for the one thing that is odd about it."""
    federation = Replacing(AggregatorState.ROUND, name, rider(), watched=False)
    federation.run()
    assert [event.party for event in federation.of_type(trace.KeyRenewed)] == [name]


@pytest.mark.parametrize("name", [ACTIVE, MEMBER])
@pytest.mark.parametrize("make", ODD_SHARES.values(), ids=ODD_SHARES)
def test_a_share_that_is_not_well_formed_counts_as_none(name, make):
    assert name in Replacing(AggregatorState.ROUND, name, make).run()


def labelled(labels, valid=16):
    return lambda party, context: share_of(party, labels=labels, valid=valid)


LABELS = np.zeros(16, "<f4")
ODD_LABELS = {
    "none": labelled(None),
    "too few": labelled(LABELS[:5].tobytes()),
    "of no class": labelled((LABELS + 2).tobytes()),
    "between classes": labelled((LABELS + 0.5).tobytes()),
    "not a number": labelled((LABELS * np.nan).tobytes()),
    "of no row": labelled(LABELS.tobytes(), valid=0),
    "of too many rows": labelled(LABELS.tobytes(), valid=17),
}


@pytest.mark.parametrize("make", ODD_LABELS.values(), ids=ODD_LABELS)
def test_labels_that_cannot_be_count_as_no_reply(make):
    assert ACTIVE in Replacing(AggregatorState.ROUND, ACTIVE, make).run()


@pytest.mark.parametrize("words", [b"", bytes(3), bytes(400)])
def test_an_update_of_another_length_moves_nobodys_model(words):
    """It counts as a reply, but no sum can be made of it: the round moves no replica."""
    federation = Replacing(AggregatorState.UPDATE, MEMBER, lambda party, context: m.UpdateShare(2, memoryview(words)))
    federation.run()
    assert federation.outcomes() == ["trained"] * 4
    assert federation.weights()["a0"] == federation.weights()["a1"]
    assert federation.oracle.applied == 2 * 3


@pytest.mark.parametrize("program", ["train", "predict", "finish"])
def test_the_aggregator_does_nothing_before_it_has_begun(program):
    federation = Federation(job_of())
    with pytest.raises(LocalProtocolError, match="cannot go from 'start'"):
        federation.simulation.drive(getattr(federation.simulation.aggregator, program)())


@pytest.mark.parametrize("program", ["begin", "train", "predict", "finish"])
def test_the_aggregator_does_nothing_after_the_end(program):
    federation = Federation(job_of(rounds=1))
    federation.simulation.train()
    federation.simulation.finish()
    with pytest.raises(LocalProtocolError, match="cannot go from 'done'"):
        federation.simulation.drive(getattr(federation.simulation.aggregator, program)())
