"""What a party answers within a session: rounds, gradients, what others sealed for it."""

import msgspec
import numpy as np
import pytest

from deputy import EVERYBODY
from federation import ACTIVE, Drbg
from vfedsec.config.job import AGGREGATOR
from vfedsec.crypto.keys import EphemeralKey, RunContext, announce
from vfedsec.errors import CryptoError, OpenFailed, ProtocolError, RemoteProtocolError
from vfedsec.protocol.messages import Batch, Deliver, Envelope, Finish, Member, Round, Share
from vfedsec.protocol.passive import Donation, envelope_of

EVERY_PARTY = pytest.mark.parametrize("name", EVERYBODY)


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


def test_an_envelope_of_another_length_is_refused(built):
    keys = built.party(ACTIVE)._keys
    built.round_index += 1
    pair = keys.pair("b0", keys.latest_of("b0"), keys.newest.key_id)
    sealed = memoryview(pair.outgoing(envelope_of("train")).seal(built.round_index, bytes(4 * 15)))
    envelope = Envelope(built.round_index, pair.own_key_id, pair.partner_key_id, sealed)
    with pytest.raises(RemoteProtocolError, match="cannot use an envelope of 60 bytes"):
        built.ask("b0", built.round_for("b0", envelope=envelope))


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
    shown = repr(party.secure) + repr(party._keys) + repr(party._group_blinds()) + repr(party._setup)
    shown += repr(Donation(3, party._group_secret, party._group_seed))
    assert not any(secret.hex() in shown or repr(secret) in shown for secret in secrets)


def test_a_test_entropy_repeats_and_differs_by_seed():
    assert Drbg(1)(40) == Drbg(1)(40) != Drbg(2)(40)
