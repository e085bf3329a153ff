"""The engine that calls the parties."""

import pytest

from vfedsec.engines.base import drive
from vfedsec.engines.faults import Fault, Faults
from vfedsec.engines.local import LocalEngine
from vfedsec.errors import CryptoError, DataError, OpenFailed, RemoteProtocolError
from vfedsec.protocol.switchboard import Exchange, Replies


class Timed:
    seconds = 0.0
    rounded = clipped = 0


class Echo:
    """A party that answers with its name and what it was asked, or not."""

    secure = Timed()

    def __init__(self, name, error=None):
        self.name, self.error, self.asked = name, error, []

    def handle(self, request):
        self.asked.append(request)
        if self.error:
            raise self.error
        return self.name.encode() + b":" + request


def exchange_of(*names, awaited=None, **fields):
    requests = {name: f"to {name}".encode() for name in names}
    return Exchange(1, "train", requests, frozenset(names if awaited is None else awaited), 1, **fields)


def engine_of(*parties, **options):
    return LocalEngine({party.name: party for party in parties}, **({"deadline": 10.0} | options))


class Strikes(Faults):
    def __init__(self, **faults):
        self.faults = faults

    def strike(self, exchange, party):
        return self.faults.get(party, Fault.NONE)


def test_everybody_is_asked_and_answers():
    replies = engine_of(Echo("p"), Echo("q")).exchange(exchange_of("p", "q"))
    assert replies == Replies({"p": b"p:to p", "q": b"q:to q"}, {}, 0.0)


def test_a_party_that_is_not_in_the_exchange_is_not_asked():
    other = Echo("q")
    engine_of(Echo("p"), other).exchange(exchange_of("p"))
    assert other.asked == []


@pytest.mark.parametrize("error", [RemoteProtocolError("no"), OpenFailed(), CryptoError("no")])
def test_a_refusal_is_as_good_as_a_party_that_is_gone(error):
    replies = engine_of(Echo("p", error), Echo("q")).exchange(exchange_of("p", "q"))
    assert set(replies.received) == {"q"}
    assert replies.gone["p"].startswith("refused: ")
    assert replies.now == 0.0


@pytest.mark.parametrize("error", [DataError("bad table"), ZeroDivisionError()])
def test_any_other_error_of_a_party_is_not_hidden(error):
    with pytest.raises(type(error)):
        engine_of(Echo("p", error)).exchange(exchange_of("p"))


def test_a_request_that_is_lost_never_arrives():
    party = Echo("p")
    replies = engine_of(party, faults=Strikes(p=Fault.BEFORE)).exchange(exchange_of("p"))
    assert party.asked == []
    assert replies == Replies({}, {}, 10.0)


def test_a_reply_that_is_late_is_not_opened_and_the_party_has_done_its_work():
    party = Echo("p")
    replies = engine_of(party, faults=Strikes(p=Fault.MIDDLE)).exchange(exchange_of("p"))
    assert party.asked == [b"to p"]
    assert replies == Replies({}, {}, 10.0)


def test_a_party_that_is_known_to_be_gone_costs_no_time():
    replies = engine_of(Echo("p"), faults=Strikes(p=Fault.GONE)).exchange(exchange_of("p"))
    assert replies == Replies({}, {"p": "not reachable"}, 0.0)


def test_nobody_waits_for_those_who_are_not_awaited():
    engine = engine_of(Echo("p"), Echo("q"), faults=Strikes(q=Fault.BEFORE))
    assert engine.exchange(exchange_of("p", "q", awaited=["p"])).now == 0.0
    assert engine.exchange(exchange_of("p", "q", awaited=["q"])).now == 10.0


def test_time_passes_by_delays_and_deadlines_alone():
    engine = engine_of(Echo("p"), faults=Strikes(p=Fault.BEFORE))
    assert engine.exchange(exchange_of("p", delay=2.5)).now == 12.5
    assert engine.exchange(exchange_of("p")).now == 22.5


class Changing(Faults):
    def __init__(self, arriving):
        self.arriving = arriving

    def request(self, exchange, party, data):
        return self.arriving(data)

    def reply(self, exchange, party, data):
        return data.upper()


def test_a_hook_may_repeat_drop_and_swap_requests_and_change_replies():
    party = Echo("p")
    engine = engine_of(party, faults=Changing(lambda data: [data, b"extra", data]))
    assert engine.exchange(exchange_of("p")).received == {"p": b"P:TO P"}
    assert party.asked == [b"to p", b"extra", b"to p"]


def test_a_hook_that_lets_nothing_through_leaves_no_reply():
    replies = engine_of(Echo("p"), faults=Changing(lambda data: [])).exchange(exchange_of("p"))
    assert replies == Replies({}, {}, 10.0)


def test_the_tap_sees_every_request_and_every_reply_that_arrives():
    heard = []
    faults = Strikes(q=Fault.MIDDLE)
    engine = engine_of(Echo("p"), Echo("q"), faults=faults, tap=lambda *what: heard.append(what[1:]))
    engine.exchange(exchange_of("p", "q"))
    assert heard == [("p", b"to p", b"p:to p"), ("q", b"to q", None)]


def test_a_program_is_driven_to_what_it_returns():
    def program():
        first = yield exchange_of("p")
        second = yield exchange_of("q")
        return [*first.received, *second.received]

    assert drive(program(), engine_of(Echo("p"), Echo("q"))) == ["p", "q"]


def test_a_program_without_an_exchange_is_over_at_once():
    def program():
        return "done"
        yield

    assert drive(program(), engine_of()) == "done"
