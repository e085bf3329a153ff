"""Every state of a party and every message: a legal transition or a `ProtocolError`, and then nothing has moved."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deputy import TRAIN, Deputy
from federation import ACTIVE, Federation, job_of
from vfedsec.config.digest import job_digest
from vfedsec.config.job import AGGREGATOR
from vfedsec.crypto.keys import EphemeralKey
from vfedsec.errors import CryptoError, ProtocolError, RemoteProtocolError
from vfedsec.protocol import messages as m
from vfedsec.protocol import session
from vfedsec.protocol.messages import Batch, Deliver, Finish, Hello, Member, Prepare, Round, Update
from vfedsec.protocol.session import Channel
from vfedsec.protocol.states import (
    ACTIVE_TRANSITIONS,
    PASSIVE_TRANSITIONS,
    PartyEvent,
    PartyState,
    event_of,
    next_state,
)

ALONE, MEMBER = "b0", "a0"
EVERYBODY = (ACTIVE, "a0", "a1", ALONE)
BATCHES = {PartyEvent.TRAIN: TRAIN, PartyEvent.INFER: Batch("validation", 0, 0)}


def table_of(name):
    return ACTIVE_TRANSITIONS if name == ACTIVE else PASSIVE_TRANSITIONS


# -- parties --


def bring(name, state):
    """A federation in which this party stands in this state."""
    deputy = Deputy(Federation(job_of(), watched=False))
    if state is PartyState.NEW:
        return deputy
    if state is PartyState.PREPARING:
        deputy.greet(*EVERYBODY)
        deputy.carry_letters()
        return deputy
    deputy.build()
    if state is PartyState.RESTARTED:
        deputy.federation.restart(name)
    elif state is PartyState.FINISHED:
        deputy.ask(name, deputy.finish())
    elif state is not PartyState.READY:
        deputy.forward(*EVERYBODY)
        if state is PartyState.UPDATED:
            deputy.ask(name, deputy.update_for(name))
    return deputy


def request_of(deputy, name, event):
    """An honest request that is this event."""
    can_plan = deputy.party(ACTIVE).state in (PartyState.READY, PartyState.FORWARDED)
    match event:
        case PartyEvent.DELIVER:
            return Deliver([])
        case PartyEvent.PREPARE:
            return Prepare()
        case PartyEvent.PLAN:
            return deputy.plan() if deputy.membership.is_known(ACTIVE) else Round(1)
        case PartyEvent.UPDATE:
            return deputy.update_for(name) if name == MEMBER and can_plan else Update(1, [], memoryview(b""))
        case PartyEvent.FINISH:
            return deputy.finish()
    batch = BATCHES[event]
    if not can_plan:
        return Round(1, batch)
    deputy.make_envelopes(batch)
    return deputy.round_for(name, batch=batch)


def have_channel(deputy, name):
    """The deputy can speak to a party that nobody has greeted yet, too."""
    deputy.board._channels.setdefault(name, Channel(bytes(32), deputy.board.context, name, at_party=False))


def give(deputy, name, event):
    """Have the event come to the party."""
    have_channel(deputy, name)
    if event is PartyEvent.HELLO:
        deputy.greet(name)
    else:
        deputy.ask(name, request_of(deputy, name, event))


CASES = [
    (name, state, event)
    for name, state, event in product((ACTIVE, MEMBER, ALONE), PartyState, PartyEvent)
    if state is not PartyState.UPDATED or name == MEMBER
]


@pytest.mark.parametrize(("name", "state", "event"), CASES, ids=lambda value: getattr(value, "value", value))
def test_every_event_in_every_state_of_a_party_is_a_legal_step_or_an_error(name, state, event):
    deputy = bring(name, state)
    party = deputy.party(name)
    assert party.state is state
    following = table_of(name)[state].get(event)
    if (name, event) == (ALONE, PartyEvent.UPDATE):
        following = None  # the table's step is for groups of several
    if following is not None:
        give(deputy, name, event)
        assert party.state is following
    else:
        with pytest.raises(ProtocolError):
            give(deputy, name, event)
        assert party.state is state


@pytest.mark.parametrize("name", [ACTIVE, MEMBER])
def test_an_illegal_event_is_refused_with_party_state_and_what_was_expected(name):
    deputy = bring(name, PartyState.PREPARING)
    with pytest.raises(RemoteProtocolError) as caught:
        give(deputy, name, PartyEvent.TRAIN)
    told = str(caught.value)
    assert f"{name} cannot accept 'train' from the aggregator in state 'preparing'" in told
    assert "expected hello, deliver, prepare, finish" in told


@pytest.mark.parametrize("name", [ACTIVE, MEMBER, ALONE])
def test_a_party_goes_on_working_after_every_kind_of_illegal_event(name):
    deputy = bring(name, PartyState.FORWARDED)
    for event in set(PartyEvent) - table_of(name)[PartyState.FORWARDED].keys():
        with pytest.raises(ProtocolError):
            give(deputy, name, event)
    give(deputy, name, PartyEvent.TRAIN)
    assert deputy.party(name).state is PartyState.FORWARDED


@given(st.sampled_from(PartyState), st.sampled_from(PartyEvent), st.sampled_from([ACTIVE, MEMBER]))
def test_the_tables_say_all_there_is_to_say(state, event, name):
    table = table_of(name)
    if state not in table:
        assert (name, state) == (ACTIVE, PartyState.UPDATED)
    elif event in table[state]:
        assert next_state(table, state, event, name) is table[state][event]
    else:
        with pytest.raises(RemoteProtocolError, match=f"{name} cannot accept '{event.value}'"):
            next_state(table, state, event, name)


def test_every_state_of_a_party_is_reached_and_all_but_the_last_are_left():
    for table in (ACTIVE_TRANSITIONS, PASSIVE_TRANSITIONS):
        targets = {target for steps in table.values() for target in steps.values()}
        assert targets | {PartyState.NEW, PartyState.RESTARTED} == set(table)
        assert [state for state, steps in table.items() if not steps] == [PartyState.FINISHED]


# -- parties, and messages that nobody honest would send --

NUMBERS = st.integers(-3, 9) | st.sampled_from([2**31, 2**62, 2**63, 2**64 - 2, 2**64 - 1, -(2**63)])
RAWS = st.sampled_from([0, 1, 16, 64, 80, 256, 512, 1024]).map(lambda size: memoryview(bytes(size)))
NAMES = st.sampled_from([*EVERYBODY, AGGREGATOR, "nobody", ""])
KEY_IDS = st.sampled_from([bytes(8), b"key of x"])  # others do not decode
BATCH = st.builds(Batch, st.sampled_from(["train", "validation", "test", "predict"]), NUMBERS, NUMBERS)


@st.composite
def odd_messages(draw, deputy):
    """Requests whose fields are what they should be or not, at random."""
    standings = deputy.membership._standings
    known = [deputy.membership.member(name) for name in EVERYBODY if standings[name].keys] or [Member("x", bytes(8))]
    members = st.lists(st.sampled_from(known) | st.builds(Member, NAMES, KEY_IDS), max_size=5)
    key_ids = KEY_IDS | st.sampled_from([member.key_id for member in known])
    envelopes = st.builds(m.Envelope, NUMBERS, key_ids, key_ids, RAWS)
    envelopes |= st.sampled_from(list(deputy.envelopes.values()) or [None])
    letters = st.builds(
        m.Letter,
        NAMES,
        NAMES,
        st.sampled_from(["preparation", "group", "donation", "x"]),
        NUMBERS,
        key_ids,
        key_ids,
        RAWS,
    )
    sums = st.builds(m.BlindSum, NUMBERS, NUMBERS, members, RAWS)
    genuine = [key for standing in standings.values() for key in standing.keys.values()]
    announcements = st.builds(
        m.Announcement, NAMES, NUMBERS, st.sampled_from([b"", bytes(32)]), st.sampled_from([b"", bytes(64)])
    ) | st.sampled_from(genuine or [m.Announcement("x", 0, b"", b"")])
    news, maybe = st.lists(announcements, max_size=2), st.none()
    rounds = NUMBERS | st.just(deputy.round_index) | st.just(deputy.round_index + 1)
    return draw(
        st.builds(
            Round,
            rounds,
            batch=maybe | BATCH,
            next_batch=maybe | BATCH,
            roster=members,
            announcements=news,
            gradient=maybe | RAWS,
            updates=st.lists(sums, max_size=2),
            envelope=maybe | envelopes,
            outputs=maybe | RAWS,
            donate_to=st.just([]) | members,
            donation=maybe | letters,
        )
        | st.builds(Update, rounds, members, RAWS)
        | st.builds(Deliver, st.lists(letters, max_size=2), news)
        | st.builds(Finish, st.text(max_size=3), NUMBERS, maybe | RAWS, st.lists(sums, max_size=2), maybe | RAWS)
        | st.just(Prepare())
        | st.builds(
            Hello, NAMES, st.binary(max_size=3), NUMBERS, NUMBERS, st.binary(max_size=3), st.text(max_size=3), KEY_IDS
        )
    )


UNGREETED = (PartyState.NEW, PartyState.RESTARTED)


@given(st.data(), st.sampled_from([case[:2] for case in CASES if case[1] not in UNGREETED]))
def test_messages_that_nobody_honest_sends_are_legal_steps_or_protocol_errors(data, case):
    name, state = case
    deputy = bring(name, state)
    party = deputy.party(name)
    for _ in range(6):
        message = data.draw(odd_messages(deputy))
        before, following = party.state, table_of(name)[party.state].get(event_of(message))
        try:
            deputy.ask(name, message)
        except (ProtocolError, CryptoError):
            assert party.state is before
        else:
            assert party.state is following


@pytest.mark.parametrize("state", UNGREETED)
@given(data=st.data(), name=st.sampled_from([ACTIVE, MEMBER, ALONE]))
def test_no_message_is_taken_before_a_greeting(data, name, state):
    deputy = bring(name, state)
    have_channel(deputy, name)
    request = deputy.frame(name, data.draw(odd_messages(deputy)))
    with pytest.raises(RemoteProtocolError, match="nobody has greeted it"):
        deputy.party(name).handle(request)
    assert deputy.party(name).state is state


HONEST = {
    "party": lambda deputy, name: name,
    "run_id": lambda deputy, name: deputy.board.context.run_id,
    "incarnation": lambda deputy, name: 0,
    "round_index": lambda deputy, name: 1,
    "job_digest": lambda deputy, name: job_digest(deputy.federation.job),
    "version": lambda deputy, name: "0.1.0",
    "public_key": lambda deputy, name: EphemeralKey(bytes(range(32)), 0).public,
}
ODD = {
    "party": NAMES,
    "run_id": st.binary(max_size=3) | st.just(bytes(16)),
    "incarnation": st.sampled_from([-1, -(2**63)]),
    "round_index": st.sampled_from([-1, -(2**63), 2**62, 2**63, 2**64 - 1]),
    "job_digest": st.binary(max_size=3) | st.just(bytes(32)),
    "version": st.sampled_from(["", "0", "0.2.0", "99.0"]),
    "public_key": st.sampled_from([b"", bytes(31), bytes(32)]),
}


def greet(deputy, name, fields, exchange):
    identity = deputy.federation.simulation._secrets.identity(AGGREGATOR)
    deputy.party(name).handle(session.sign(identity, exchange, Hello(**fields)))


@pytest.mark.parametrize("odd", ODD)
@given(data=st.data(), name=st.sampled_from([ACTIVE, MEMBER]))
def test_a_signed_greeting_with_anything_odd_about_it_is_refused(data, name, odd):
    deputy = bring(name, PartyState.READY)
    fields = {key: honest(deputy, name) for key, honest in HONEST.items()}
    value = data.draw(ODD[odd].filter(lambda value: value != fields[odd]))
    with pytest.raises((ProtocolError, CryptoError)):
        greet(deputy, name, fields | {odd: value}, 900)
    assert deputy.party(name).state is PartyState.READY


@given(st.sampled_from([ACTIVE, MEMBER]), st.integers(0, 2**64 - 1), st.integers(0, 2**62 - 1))
def test_an_honest_greeting_of_any_incarnation_and_round_is_taken_once(name, incarnation, round_index):
    deputy = bring(name, PartyState.READY)
    fields = {key: honest(deputy, name) for key, honest in HONEST.items()}
    fields |= {"incarnation": incarnation, "round_index": round_index}
    greet(deputy, name, fields, 900)
    with pytest.raises(RemoteProtocolError, match="cannot accept exchange 3"):
        greet(deputy, name, fields, 3)
    assert deputy.party(name).state is PartyState.READY


@given(st.binary(max_size=120))
def test_bytes_that_are_no_frame_are_a_protocol_error(junk):
    deputy = bring(ALONE, PartyState.READY)
    for data in (junk, b"\1\0" + junk, b"\1\1" + junk):
        with pytest.raises((ProtocolError, CryptoError)):
            deputy.party(ALONE).handle(data)
    assert deputy.party(ALONE).state is PartyState.READY
