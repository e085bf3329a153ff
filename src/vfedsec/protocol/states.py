"""Who may say what when: the transition tables of the protocol.

Everything that decides whether a message is legal lives here, as data. The code, the diagrams in the documentation
and the exhaustive test are driven by the same tables. A state that lacks an event refuses it with `ProtocolError`.
"""

from __future__ import annotations

from enum import StrEnum

from vfedsec.errors import LocalProtocolError, RemoteProtocolError
from vfedsec.protocol.messages import Deliver, Finish, Hello, Prepare, Request, Round, Update


class PartyState(StrEnum):
    """Where a party stands."""

    NEW = "new"  #: has not been greeted
    RESTARTED = "restarted"  #: has its prepared rows from before, and has not been greeted since
    PREPARING = "preparing"  #: exchanges letters with the others: alignment, encoding
    READY = "ready"  #: owes nothing and is owed nothing
    FORWARDED = "forwarded"  #: has sent a training embedding, its gradient may come
    UPDATED = "updated"  #: has sent a blinded update, the group's sum may come
    FINISHED = "finished"  #: the run is over


class PartyEvent(StrEnum):
    """What can come to a party; a `Round` is one of three things."""

    HELLO = "hello"
    DELIVER = "deliver"
    PREPARE = "prepare"
    TRAIN = "train"  #: a round with a training batch
    INFER = "infer"  #: a round with an evaluation or prediction batch
    PLAN = "plan"  #: a round without a batch: only the envelopes of the next one
    UPDATE = "update"
    FINISH = "finish"


_State, _Event = PartyState, PartyEvent
_COMMON: dict[PartyState, dict[PartyEvent, PartyState]] = {
    _State.NEW: {_Event.HELLO: _State.PREPARING},
    _State.RESTARTED: {_Event.HELLO: _State.READY},
    _State.PREPARING: {
        _Event.HELLO: _State.PREPARING,
        _Event.DELIVER: _State.PREPARING,
        _Event.PREPARE: _State.READY,
        _Event.FINISH: _State.FINISHED,
    },
    _State.READY: {
        _Event.HELLO: _State.READY,
        _Event.TRAIN: _State.FORWARDED,
        _Event.INFER: _State.READY,
        _Event.FINISH: _State.FINISHED,
    },
    _State.FORWARDED: {
        _Event.HELLO: _State.READY,
        _Event.TRAIN: _State.FORWARDED,
        _Event.INFER: _State.READY,
        _Event.FINISH: _State.FINISHED,
    },
    _State.FINISHED: {},
}

ACTIVE_TRANSITIONS: dict[PartyState, dict[PartyEvent, PartyState]] = {
    **_COMMON,
    _State.READY: {**_COMMON[_State.READY], _Event.PLAN: _State.READY},
    _State.FORWARDED: {**_COMMON[_State.FORWARDED], _Event.PLAN: _State.READY},
}

PASSIVE_TRANSITIONS: dict[PartyState, dict[PartyEvent, PartyState]] = {
    **_COMMON,
    _State.FORWARDED: {**_COMMON[_State.FORWARDED], _Event.UPDATE: _State.UPDATED},
    _State.UPDATED: {
        _Event.HELLO: _State.READY,
        _Event.TRAIN: _State.FORWARDED,
        _Event.INFER: _State.READY,
        _Event.FINISH: _State.FINISHED,
    },
}


class AggregatorState(StrEnum):
    """Where the aggregator stands; each state but the first and last waits for the replies of one exchange."""

    START = "start"  #: nothing is sent
    GREETING = "greeting"  #: waits for every party's welcome
    PREPARING = "preparing"  #: passes letters on, until nobody has any
    BUILDING = "building"  #: waits for every party to have built its model
    ROUND = "round"  #: waits for the embeddings of a round
    UPDATE = "update"  #: waits for the blinded updates of groups of several
    WAITING = "waiting"  #: lacks a party it cannot go on without, and greets it again and again
    FINISHING = "finishing"  #: has said that the run is over
    DONE = "done"  #: nothing more is sent


_Agg = AggregatorState
AGGREGATOR_TRANSITIONS: dict[AggregatorState, frozenset[AggregatorState]] = {
    _Agg.START: frozenset({_Agg.GREETING}),
    _Agg.GREETING: frozenset({_Agg.GREETING, _Agg.PREPARING}),
    _Agg.PREPARING: frozenset({_Agg.PREPARING, _Agg.BUILDING}),
    _Agg.BUILDING: frozenset({_Agg.BUILDING, _Agg.ROUND, _Agg.FINISHING}),
    _Agg.ROUND: frozenset({_Agg.ROUND, _Agg.UPDATE, _Agg.WAITING, _Agg.FINISHING}),
    _Agg.UPDATE: frozenset({_Agg.ROUND, _Agg.WAITING, _Agg.FINISHING}),
    _Agg.WAITING: frozenset({_Agg.WAITING, _Agg.ROUND, _Agg.FINISHING}),
    _Agg.FINISHING: frozenset({_Agg.DONE}),
    _Agg.DONE: frozenset(),
}


_EVENTS: dict[type[Request], PartyEvent] = {
    Hello: PartyEvent.HELLO,
    Deliver: PartyEvent.DELIVER,
    Prepare: PartyEvent.PREPARE,
    Update: PartyEvent.UPDATE,
    Finish: PartyEvent.FINISH,
}


def event_of(request: Request) -> PartyEvent:
    """Which event a request is to the party that gets it."""
    if not isinstance(request, Round):
        return _EVENTS[type(request)]
    if request.batch is None:
        return PartyEvent.PLAN
    return PartyEvent.TRAIN if request.batch.kind == "train" else PartyEvent.INFER


def next_state(
    transitions: dict[PartyState, dict[PartyEvent, PartyState]],
    state: PartyState,
    event: PartyEvent,
    party: str,
) -> PartyState:
    """Where the event leads. Raises `RemoteProtocolError` when it may not come in this state."""
    try:
        return transitions[state][event]
    except KeyError:
        legal = ", ".join(event.value for event in transitions[state]) or "nothing"
        raise RemoteProtocolError(
            f"{party} cannot accept {event.value!r} from the aggregator in state {state.value!r}: expected {legal}"
        ) from None


def check_step(state: AggregatorState, following: AggregatorState) -> None:
    """Raises `LocalProtocolError` when the aggregator may not go from one state to the other."""
    if following not in AGGREGATOR_TRANSITIONS[state]:
        raise LocalProtocolError(f"the aggregator cannot go from {state.value!r} to {following.value!r}")
