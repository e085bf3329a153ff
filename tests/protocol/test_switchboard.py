"""The aggregator's side of every session."""

from types import SimpleNamespace

import pytest

from federation import ACTIVE
from vfedsec.crypto.keys import Announcement, EphemeralKey, announce
from vfedsec.errors import CryptoError, OpenFailed, RemoteProtocolError
from vfedsec.protocol import messages as m
from vfedsec.protocol import session
from vfedsec.protocol.switchboard import Exchange, attempt


def welcome(deputy, name, *, by=None, of=None, answering=None, issued_round=0):
    """A greeting's answer as somebody may have made it."""
    exchange = deputy.board.exchange("hello", {}, 0, greet=[name])
    identity = deputy.federation.simulation._secrets.identity(by or name)
    key = EphemeralKey(bytes(range(32)), issued_round)
    message = m.Welcome(announce(identity, deputy.board.context, of or name, key), 0, "0.1.0")
    request = exchange.requests[name] if answering is None else answering
    return session.sign(identity, exchange.number, message, answering=request)


@pytest.mark.parametrize("issued_round", [-1, 1, 2**40])
def test_a_welcome_with_a_key_of_another_round_is_refused(deputy, issued_round):
    """One far ahead would make all later keys of the party old ones."""
    with pytest.raises(RemoteProtocolError, match="expected a key of a0 issued in round 0, got another"):
        deputy.board.welcome("a0", welcome(deputy, "a0", issued_round=issued_round))


def test_every_exchange_has_a_number_of_its_own(deputy):
    numbers = [deputy.board.exchange("hello", {}, 0, greet=["a0"]).number for _ in range(5)]
    assert numbers == [1, 2, 3, 4, 5]
    assert deputy.board.count == 5


def test_the_greeted_are_awaited_only_where_nobody_else_is(deputy):
    deputy.build()
    beside = deputy.board.exchange("x", {"a0": m.Prepare()}, 0, greet=["b0"])
    alone = deputy.board.exchange("x", {}, 0, greet=["b0"])
    assert set(beside.requests) == {"a0", "b0"}
    assert beside.awaited == {"a0"}
    assert alone.awaited == {"b0"}


def test_asking_again_sends_the_same_bytes_to_whom_it_may_concern():
    exchange = Exchange(3, "mail", {"a0": b"one", "b0": b"two"}, frozenset({"a0", "b0"}), 0)
    again = exchange.again(["b0"], 1.5)
    assert (again.number, again.requests, again.awaited, again.delay) == (3, {"b0": b"two"}, {"b0"}, 1.5)


def test_a_welcome_of_the_party_is_believed(deputy):
    assert deputy.board.welcome("a0", welcome(deputy, "a0")).announcement.party == "a0"


def test_a_welcome_signed_by_somebody_else_is_not(deputy):
    with pytest.raises(OpenFailed):
        deputy.board.welcome("a0", welcome(deputy, "a0", by="b0"))


def test_a_welcome_to_another_greeting_is_not(deputy):
    with pytest.raises(OpenFailed):
        deputy.board.welcome("a0", welcome(deputy, "a0", answering=b"another"))


def test_a_welcome_with_somebody_elses_key_is_not(deputy):
    with pytest.raises(CryptoError, match="a0 cannot announce a key of 'b0'"):
        deputy.board.welcome("a0", welcome(deputy, "a0", of="b0"))


def test_a_welcome_to_an_older_exchange_is_not(deputy):
    late = welcome(deputy, "a0")
    deputy.board.exchange("hello", {}, 0, greet=["a0"])
    with pytest.raises(RemoteProtocolError, match="expected a reply to exchange 2, got one to 1"):
        deputy.board.welcome("a0", late)


def test_a_key_that_its_party_did_not_sign_is_not_passed_on(deputy):
    forged = Announcement("a0", 0, bytes(range(32)), bytes(64))
    with pytest.raises(CryptoError, match="does not verify"):
        deputy.board.check(forged, "a0")


def test_a_key_that_makes_no_secret_is_not_passed_on(deputy):
    """Its partners would refuse every roster that names it."""
    identity = deputy.federation.simulation._secrets.identity("a0")
    useless = announce(identity, deputy.board.context, "a0", SimpleNamespace(issued_round=0, public=bytes(32)))
    with pytest.raises(CryptoError, match="no shared secret"):
        deputy.board.check(useless, "a0")


def test_a_reply_of_another_type_is_refused(deputy):
    deputy.build()
    reply = deputy.party("a0").handle(deputy.frame("a0", m.Finish("over", 0)))
    with pytest.raises(RemoteProtocolError, match="expected Share from a0, got Farewell"):
        deputy.board.read("a0", reply, m.Share)


def test_a_reply_of_another_party_is_refused(deputy):
    deputy.build()
    deputy.frame(ACTIVE, m.Prepare())
    exchange = deputy.board.exchange("x", {"a0": m.Finish("over", 0), "b0": m.Finish("over", 0)}, 0)
    reply = deputy.party("a0").handle(exchange.requests["a0"])
    with pytest.raises(OpenFailed):
        deputy.board.read("b0", reply, m.Farewell)


def test_an_attempt_tells_why_it_failed_and_lets_bugs_through():
    def fail():
        raise OpenFailed

    assert attempt(lambda: 7) == 7
    assert "does not open" in attempt(fail)
    with pytest.raises(ZeroDivisionError):
        attempt(lambda: 1 // 0)
