"""Whom a party believes: greetings, repeated requests, keys over time, restarts."""

import numpy as np
import pytest

from deputy import EVERYBODY, Deputy
from federation import Federation, job_of
from vfedsec.config.digest import job_digest
from vfedsec.config.job import AGGREGATOR
from vfedsec.crypto.keys import EphemeralKey
from vfedsec.errors import CryptoError, LocalProtocolError, OpenFailed, RemoteProtocolError
from vfedsec.protocol import session
from vfedsec.protocol.messages import Deliver, Finish, Hello, Prepare
from vfedsec.protocol.states import PartyState

EVERY_PARTY = pytest.mark.parametrize("name", EVERYBODY)


def hello(deputy, **changes):
    context = deputy.board.context
    fields = {
        "party": "a0",
        "run_id": context.run_id,
        "incarnation": 0,
        "round_index": 0,
        "job_digest": job_digest(deputy.federation.job),
        "version": "0.1.0",
        "public_key": EphemeralKey(bytes(range(32)), 0).public,
    }
    return Hello(**(fields | changes))


def signed(deputy, message, *, exchange=900, by=AGGREGATOR):
    return session.sign(deputy.federation.simulation._secrets.identity(by), exchange, message)


# -- greetings --


@EVERY_PARTY
def test_a_request_before_any_greeting_is_refused(deputy, name):
    deputy.greet(*set(EVERYBODY) - {name})
    other = next(iter(set(EVERYBODY) - {name}))
    with pytest.raises(RemoteProtocolError, match="nobody has greeted it"):
        deputy.party(name).handle(deputy.frame(other, Prepare()))


@EVERY_PARTY
def test_a_greeting_that_the_aggregator_did_not_sign_is_refused(deputy, name):
    with pytest.raises(OpenFailed):
        deputy.party(name).handle(signed(deputy, hello(deputy, party=name), by="b0"))
    assert deputy.party(name).state is PartyState.NEW


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"job_digest": bytes(32)}, "another job file"),
        ({"version": "0.2.0"}, "expected version"),
        ({"version": "1.1.0"}, "expected version"),
    ],
)
def test_a_greeting_for_another_job_or_version_is_refused(deputy, changes, reason):
    with pytest.raises(RemoteProtocolError, match=reason):
        deputy.party("a0").handle(signed(deputy, hello(deputy, **changes)))
    assert deputy.party("a0").state is PartyState.NEW


def test_a_greeting_from_another_patch_version_is_answered(deputy):
    deputy.party("a0").handle(signed(deputy, hello(deputy, version="0.1.99")))
    assert deputy.party("a0").state is PartyState.PREPARING


@pytest.mark.parametrize("changes", [{"run_id": b"another run id.."}, {"run_id": bytes(16)}])
def test_a_party_in_a_run_joins_no_other(built, changes):
    with pytest.raises(RemoteProtocolError, match="part of another run"):
        built.party("a0").handle(signed(built, hello(built, **changes)))


def test_a_party_does_not_go_back_to_an_older_incarnation(built):
    party = built.party("a0")
    party.handle(signed(built, hello(built, incarnation=1), exchange=1))
    with pytest.raises(RemoteProtocolError, match="part of another run"):
        party.handle(signed(built, hello(built, incarnation=0)))


def test_a_new_incarnation_counts_its_exchanges_anew(built):
    built.party("a0").handle(signed(built, hello(built, incarnation=1), exchange=1))


def test_a_new_incarnation_counts_its_rounds_anew(built):
    built.forward(*EVERYBODY)
    party = built.party("a0")
    party.handle(signed(built, hello(built, incarnation=1), exchange=1))
    assert party._last_round == -1


@EVERY_PARTY
def test_a_greeting_brings_a_fresh_key(built, name):
    before = built.membership.member(name).key_id
    built.greet(name)
    assert built.membership.member(name).key_id != before


def test_a_replayed_greeting_is_refused(built):
    party = built.party("a0")
    first, second = (signed(built, hello(built), exchange=exchange) for exchange in (900, 901))
    party.handle(first)
    party.handle(second)
    built.membership._standings["a0"].told.clear()
    party.handle(first)  # one of the last two: the same bytes again
    party.handle(signed(built, hello(built), exchange=902))
    with pytest.raises(RemoteProtocolError, match="cannot accept exchange 900"):
        party.handle(first)


def test_a_repeated_greeting_gets_the_very_same_bytes(built):
    greeting = signed(built, hello(built))
    party = built.party("a0")
    assert party.handle(greeting) == party.handle(greeting)


def test_a_signed_frame_with_anything_but_a_greeting_is_refused(built):
    with pytest.raises(RemoteProtocolError, match="cannot accept a signed Prepare"):
        built.party("a0").handle(signed(built, Prepare()))


def test_a_greeting_for_another_party_is_refused(built):
    """Whoever reads the wire could else have every party greeted by what was meant for one."""
    with pytest.raises(RemoteProtocolError, match="a0 cannot join: the greeting is for 'b0'"):
        built.party("a0").handle(signed(built, hello(built, party="b0")))


def test_a_greeting_inside_a_session_is_refused(built):
    with pytest.raises(RemoteProtocolError, match="greeting that is not signed"):
        built.ask("a0", hello(built))


@pytest.mark.parametrize("incarnation", [0, 1])
def test_a_greeting_with_a_degenerate_key_is_refused(built, incarnation):
    with pytest.raises(CryptoError, match="no shared secret"):
        built.party("a0").handle(signed(built, hello(built, public_key=bytes(32), incarnation=incarnation)))
    built.forward(*EVERYBODY)  # the session from before goes on


def test_a_greeting_erases_the_keys_from_before(built):
    keys = built.party("b0")._keys
    for _ in range(5):
        built.greet("b0")
    built.forward(*EVERYBODY)
    assert list(keys._own) == [keys.newest.key_id]
    assert {ends[2] for ends in keys._pairs} == {keys.newest.key_id}


def test_a_greeting_drops_what_waited_for_a_gradient(built):
    built.forward(*EVERYBODY)
    built.greet("b0")
    built.round_index += 1
    assert built.party("b0").state is PartyState.READY
    with pytest.raises(LocalProtocolError, match="no training forward"):
        built.party("b0").model.backward(np.zeros((16, 4), np.float32))


# -- repeats --


@EVERY_PARTY
def test_a_repeated_request_gets_the_very_same_bytes(built, name):
    built.make_envelopes()
    request = built.frame(name, built.round_for(name))
    party = built.party(name)
    reply = party.handle(request)
    weights = party.model.dump()
    assert party.handle(request) == reply
    assert party.model.dump() == weights


@EVERY_PARTY
def test_another_request_under_a_used_number_is_refused(built, name):
    built.make_envelopes()
    number = built.board.count + 1
    first = built.frame(name, built.round_for(name))
    built.board._exchange = number - 1
    second = built.frame(name, Finish("early", 0))
    party = built.party(name)
    party.handle(first)
    with pytest.raises(RemoteProtocolError, match=f"cannot accept exchange {number}: it has seen {number}"):
        party.handle(second)


@EVERY_PARTY
def test_an_old_request_is_refused(built, name):
    built.make_envelopes()
    old = built.frame(name, built.round_for(name))
    for _ in range(3):
        built.make_envelopes()
        built.ask(name, built.round_for(name))
    with pytest.raises(RemoteProtocolError, match="cannot accept exchange"):
        built.party(name).handle(old)


@EVERY_PARTY
def test_a_request_of_the_session_before_is_refused(built, name):
    built.make_envelopes()
    old = built.frame(name, built.round_for(name))
    built.greet(name)
    with pytest.raises(OpenFailed):
        built.party(name).handle(old)


def test_a_request_to_another_party_is_refused(built):
    built.make_envelopes()
    with pytest.raises(OpenFailed):
        built.party("a1").handle(built.frame("a0", built.round_for("a0")))


def test_a_reply_sent_back_as_a_request_is_refused(built):
    built.make_envelopes()
    party = built.party("a0")
    reply = party.handle(built.frame("a0", built.round_for("a0")))
    with pytest.raises(OpenFailed):
        party.handle(reply)


# -- keys over time --


def test_a_key_is_renewed_every_so_many_rounds_and_the_old_one_erased():
    deputy = Deputy(Federation(job_of(rekey_every=3), watched=False))
    deputy.build()
    party, keys = deputy.party("b0"), []
    for _ in range(6):
        shares = deputy.forward(*EVERYBODY)
        keys.append(deputy.membership.member("b0").key_id)
        for name, share in shares.items():
            if share.announcement is not None:
                deputy.membership.announced(name, share.announcement)
    assert len(set(keys)) > 1
    assert keys[0] not in party._keys._own
    assert keys[-1] in party._keys._own
    assert len(party._keys._own) <= 2


def test_a_new_key_is_announced_until_the_roster_uses_it():
    deputy = Deputy(Federation(job_of(rekey_every=3), watched=False))
    deputy.build()
    announced = []
    for _ in range(3):
        announced.append(deputy.forward(*EVERYBODY)["b0"].announcement)
    assert announced[:2] == [None, None]
    assert announced[2].party == "b0"
    for _ in range(2):
        announced.append(deputy.forward(*EVERYBODY)["b0"].announcement)
    assert all(one == announced[2] for one in announced[3:])


def test_a_key_that_a_greeting_brought_lasts_as_long_as_any_other():
    deputy = Deputy(Federation(job_of(rekey_every=3), watched=False))
    deputy.build()
    for _ in range(2):
        deputy.forward(*EVERYBODY)
    deputy.greet("b0")
    assert [deputy.forward(*EVERYBODY)["b0"].announcement is None for _ in range(3)] == [True, True, False]


@EVERY_PARTY
def test_a_roster_that_keeps_to_a_replaced_key_is_refused_in_the_end(name):
    """Else the aggregator could have everything masked under one key for the whole run."""
    deputy = Deputy(Federation(job_of(rekey_every=3), watched=False))
    deputy.build()
    with pytest.raises(RemoteProtocolError, match=f"{name} cannot take part with a key that it replaced 8 rounds ago"):
        for _ in range(3 + 8 + 1):
            for party, share in deputy.forward(*EVERYBODY).items():
                if share.announcement is not None and party != name:
                    deputy.membership.announced(party, share.announcement)


@pytest.mark.parametrize(
    "changes", [{"run_id": b""}, {"run_id": b"short"}, {"round_index": -5}, {"round_index": 2**63}]
)
def test_a_greeting_without_a_proper_run_and_round_is_refused(deputy, changes):
    with pytest.raises(RemoteProtocolError, match="names no proper run and round"):
        deputy.party("a0").handle(signed(deputy, hello(deputy, **changes)))


def test_an_old_greeting_does_not_keep_a_party_from_its_run(deputy):
    """Anybody on the wire can repeat one; it binds only once the session has carried a request."""
    deputy.party("a0").handle(signed(deputy, hello(deputy, run_id=b"yesterday's run.", incarnation=7)))
    deputy.greet(*EVERYBODY)
    deputy.ask("a0", Deliver([], deputy.news("a0")))
    with pytest.raises(RemoteProtocolError, match="part of another run"):
        deputy.party("a0").handle(signed(deputy, hello(deputy, run_id=b"yesterday's run.", incarnation=7)))


def test_keys_are_drawn_from_the_entropy_that_was_handed_in():
    keys = []
    for _ in range(2):
        deputy = Deputy(Federation(job_of(), seed="same", watched=False))
        deputy.greet(*EVERYBODY)
        keys.append([deputy.membership.member(name).key_id for name in EVERYBODY])
    assert keys[0] == keys[1]
    other = Deputy(Federation(job_of(), seed="other", watched=False))
    other.greet(*EVERYBODY)
    assert not {other.membership.member(name).key_id for name in EVERYBODY} & set(keys[0])


# -- a party that lost its memory --


@EVERY_PARTY
def test_a_restarted_party_has_nothing_of_its_sessions(built, name):
    built.make_envelopes()
    request = built.frame(name, built.round_for(name))
    built.federation.restart(name)
    assert built.party(name).state is PartyState.RESTARTED
    with pytest.raises(RemoteProtocolError, match="nobody has greeted it"):
        built.party(name).handle(request)


@EVERY_PARTY
def test_a_restarted_party_is_ready_once_it_is_greeted(built, name):
    built.federation.restart(name)
    built.greet(name)
    assert built.party(name).state is PartyState.READY


def test_a_restarted_member_of_a_group_of_several_takes_part_in_no_round_without_a_model(built):
    built.federation.restart("a0")
    built.round_index += 1  # its new key is newer than the one its partners know
    built.greet("a0")
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="it was restarted and has no model"):
        built.ask("a0", built.round_for("a0"))
