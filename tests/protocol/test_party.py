"""What both kinds of party do with requests: sessions, repeats, rosters, keys."""

import msgspec
import numpy as np
import pytest

from deputy import Deputy
from federation import ACTIVE, Drbg, Federation, job_of
from vfedsec.config.digest import job_digest
from vfedsec.config.job import AGGREGATOR
from vfedsec.crypto.keys import EphemeralKey, RunContext, announce
from vfedsec.errors import CryptoError, LocalProtocolError, OpenFailed, ProtocolError, RemoteProtocolError
from vfedsec.protocol import session
from vfedsec.protocol.messages import Batch, Deliver, Finish, Hello, Member, Prepare, Round, Share
from vfedsec.protocol.states import PartyState

EVERYBODY = (ACTIVE, "a0", "a1", "b0")
EVERY_PARTY = pytest.mark.parametrize("name", EVERYBODY)


@pytest.fixture
def deputy():
    return Deputy(Federation(job_of(), watched=False))


@pytest.fixture
def built(deputy):
    deputy.build()
    return deputy


def hello(deputy, **changes):
    context = deputy.board.context
    fields = {
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
        deputy.party(name).handle(signed(deputy, hello(deputy), by="b0"))
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


def test_a_greeting_inside_a_session_is_refused(built):
    with pytest.raises(RemoteProtocolError, match="greeting that is not signed"):
        built.ask("a0", hello(built))


def test_a_greeting_with_a_degenerate_key_is_refused(built):
    with pytest.raises(CryptoError, match="no shared secret"):
        built.party("a0").handle(signed(built, hello(built, public_key=bytes(32))))


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


# -- rounds --


@EVERY_PARTY
def test_rounds_only_go_forward(built, name):
    """A second round of one number would be a second array under one mask."""
    built.forward(*EVERYBODY)
    envelopes = built.envelopes
    for round_index in (built.round_index, built.round_index - 1, 0, -5):
        built.greet(name)
        built.envelopes = envelopes
        with pytest.raises(ProtocolError, match=f"cannot take part in round {round_index}"):
            built.ask(name, built.round_for(name, round_index=round_index, batch=Batch("train", 0, 1)))


def test_the_active_party_plans_no_round_twice(built):
    plan = built.plan()
    built.ask(ACTIVE, plan)
    with pytest.raises(ProtocolError, match=f"cannot take part in round {plan.round_index}"):
        built.ask(ACTIVE, msgspec.structs.replace(plan, next_batch=Batch("train", 0, 1)))


def test_a_key_that_was_pushed_out_and_told_again_masks_no_round_twice(built):
    """Whoever greets a party often enough pushes its key out of the active one's memory, masks and all."""
    built.forward(*EVERYBODY)
    old = built.membership.member("b0")
    announcement = next(iter(built.membership._standings["b0"].keys.values()))
    used, news = built.round_index, []
    built.round_index = announcement.issued_round
    for _ in range(2):
        built.greet("b0")
        news += built.news(ACTIVE)
    roster = [*built.members([ACTIVE]), old]
    again = Round(used, Batch("train", 0, 1), roster=roster, announcements=[*news, announcement])
    with pytest.raises((ProtocolError, CryptoError)):
        built.ask(ACTIVE, again)


def roster_cases(deputy, name):
    honest = deputy.round_for(name).roster
    stranger = Member("nobody", bytes(8))
    return {
        "empty": [],
        "without itself": [member for member in honest if member.party != name],
        "with a stranger": [*honest, stranger],
        "with somebody twice": [*honest, honest[0]],
        "with itself twice": [*honest, next(member for member in honest if member.party == name)],
    }


@EVERY_PARTY
@pytest.mark.parametrize(
    "case", ["empty", "without itself", "with a stranger", "with somebody twice", "with itself twice"]
)
def test_a_roster_that_cannot_be_is_refused(built, name, case):
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="roster"):
        built.ask(name, built.round_for(name, roster=roster_cases(built, name)[case]))


@pytest.mark.parametrize("name", ["a0", "b0"])
def test_a_passive_party_masks_with_nobody_but_itself_never(built, name):
    """A masking set of one is refused by the party itself."""
    built.make_envelopes()
    with pytest.raises(ProtocolError):
        built.ask(name, built.round_for(name, roster=built.members([name])))


def test_a_passive_party_takes_part_in_no_round_without_the_active_one(built):
    """The sum of a group alone would stand bare, and one member could take its own part from it."""
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="roster"):
        built.ask("a0", built.round_for("a0", roster=built.members(["a0", "a1"])))


def test_a_party_of_another_slice_is_no_partner(built):
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="roster"):
        built.ask("a0", built.round_for("a0", roster=built.members([ACTIVE, "a0", "b0"])))


@EVERY_PARTY
def test_a_roster_with_a_key_that_is_not_known_is_refused(built, name):
    built.make_envelopes()
    members = built.round_for(name).roster
    forged = [Member(member.party, bytes(8)) if member.party != name else member for member in members]
    with pytest.raises(CryptoError, match="does not hold"):
        built.ask(name, built.round_for(name, roster=forged))


@EVERY_PARTY
def test_an_announcement_signed_by_somebody_else_is_refused(built, name):
    built.make_envelopes()
    partner = built.roles.partners(name)[0]
    key = EphemeralKey(bytes(range(32)), 5)
    secrets = built.federation.simulation._secrets
    forged = announce(secrets.identity(AGGREGATOR), built.board.context, partner, key)
    with pytest.raises(CryptoError, match="does not verify"):
        built.ask(name, built.round_for(name, announcements=[forged]))


def test_an_announcement_of_another_incarnation_is_refused(built):
    built.make_envelopes()
    secrets = built.federation.simulation._secrets
    context = RunContext(built.board.context.run_id, 1)
    old = announce(secrets.identity(ACTIVE), context, ACTIVE, EphemeralKey(bytes(range(32)), 5))
    with pytest.raises(CryptoError, match="does not verify"):
        built.ask("a0", built.round_for("a0", announcements=[old]))


# -- gradients --


@pytest.mark.parametrize("name", [ACTIVE, "b0"])
def test_a_gradient_of_another_size_is_refused(built, name):
    built.forward(*EVERYBODY)
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="cannot accept a gradient of 12 bytes"):
        built.ask(name, built.round_for(name, gradient=memoryview(bytes(12))))


@pytest.mark.parametrize("name", [ACTIVE, "b0"])
def test_a_gradient_after_no_training_embedding_is_refused(built, name):
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="cannot accept a gradient"):
        built.ask(name, built.round_for(name, gradient=built.gradient(name)))


@pytest.mark.parametrize("name", [ACTIVE, "b0"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_is_refused(built, name, value):
    built.forward(*EVERYBODY)
    gradient = np.zeros(len(built.gradient(name)) // 4, "<f4")
    gradient[3] = value
    before = built.party(name).model.dump()
    with pytest.raises(RemoteProtocolError, match="not finite"):
        built.ask(name, Finish("over", built.round_index, gradient=gradient.data.cast("B")))
    assert built.party(name).model.dump() == before


@pytest.mark.parametrize("name", [ACTIVE, "b0"])
def test_a_gradient_moves_the_model(built, name):
    built.forward(*EVERYBODY)
    before = built.party(name).model.dump()
    gradient = np.ones(len(built.gradient(name)) // 4, "<f4").data.cast("B")
    built.ask(name, Finish("over", built.round_index, gradient=gradient))
    assert built.party(name).model.dump() != before


# -- keys over time --


def test_a_key_is_renewed_every_so_many_rounds_and_the_old_one_erased():
    deputy = Deputy(Federation(job_of(rekey_every=3), watched=False))
    deputy.build()
    party, keys = deputy.party("b0"), []
    for _ in range(6):
        share = deputy.forward(*EVERYBODY)["b0"]
        keys.append(deputy.membership.member("b0").key_id)
        if share.announcement is not None:
            deputy.membership.announced("b0", share.announcement)
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
    for _ in range(4):
        announced.append(deputy.forward(*EVERYBODY)["b0"].announcement)
    assert all(one == announced[2] for one in announced[3:])


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


# -- frames --


def test_whoever_changes_an_envelope_inside_a_request_is_found_out(built):
    """The aggregator can say what it likes in its session, but not in the active party's name."""
    built.make_envelopes()
    sealed = bytearray(built.envelopes["b0"].sealed)
    sealed[5] ^= 1
    forged = msgspec.structs.replace(built.envelopes["b0"], sealed=memoryview(sealed))
    with pytest.raises(OpenFailed):
        built.ask("b0", built.round_for("b0", envelope=forged))
    built.make_envelopes()
    assert isinstance(built.ask("b0", built.round_for("b0")), Share)


def test_an_envelope_of_another_party_does_not_open(built):
    built.make_envelopes()
    envelope = msgspec.structs.replace(built.envelopes["a1"], receiver_key_id=built.membership.member("a0").key_id)
    with pytest.raises(OpenFailed):
        built.ask("a0", built.round_for("a0", envelope=envelope))


def test_an_envelope_of_another_round_is_refused(built):
    built.make_envelopes()
    old = built.envelopes["b0"]
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="no envelope"):
        built.ask("b0", built.round_for("b0", envelope=old))
    built.make_envelopes()
    renumbered = msgspec.structs.replace(old, round_index=built.round_index)
    with pytest.raises(OpenFailed):
        built.ask("b0", built.round_for("b0", envelope=renumbered))


def test_a_letter_to_somebody_else_is_refused(deputy):
    deputy.greet(*EVERYBODY)
    letters = deputy.ask("a0", Deliver([], deputy.news("a0"))).letters
    with pytest.raises(RemoteProtocolError, match="cannot accept a letter to 'a1'"):
        deputy.ask("b0", Deliver(letters, deputy.news("b0")))


def test_a_changed_letter_does_not_open(deputy):
    deputy.greet(*EVERYBODY)
    letter = deputy.ask("a0", Deliver([], deputy.news("a0"))).letters[0]
    sealed = bytearray(letter.sealed)
    sealed[0] ^= 128
    forged = msgspec.structs.replace(letter, sealed=memoryview(sealed))
    with pytest.raises(OpenFailed):
        deputy.ask("a1", Deliver([forged], deputy.news("a1")))


def test_no_repr_holds_a_secret_of_a_party(built):
    federation, party = built.federation, built.party("a0")
    secrets = [federation.simulation._secrets.private_seed(name) for name in EVERYBODY]
    secrets += [party._group_secret, party._group_seed]
    assert all(len(secret) == 32 for secret in secrets)
    shown = repr(party.secure) + repr(party._keys) + repr(party._group_blinds())
    assert not any(secret.hex() in shown or repr(secret) in shown for secret in secrets)


def test_a_test_entropy_repeats_and_differs_by_seed():
    assert Drbg(1)(40) == Drbg(1)(40) != Drbg(2)(40)
