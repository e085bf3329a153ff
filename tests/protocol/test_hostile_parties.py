"""One party that does not keep to the protocol costs its own share; where the run cannot go on with it, the run ends
with the reason."""

import msgspec
import numpy as np
import pytest

from federation import ACTIVE, Federation, job_of, started
from vfedsec import trace
from vfedsec.crypto.keys import EphemeralKey, announce
from vfedsec.engines.faults import Fault
from vfedsec.errors import DataError, PartyTimeout, RemoteProtocolError
from vfedsec.protocol import dialogue
from vfedsec.protocol import messages as m
from vfedsec.protocol.passive import _DONATION, Donation


def federation_of(groups=(2, 1), **options):
    federation = Federation(job_of(groups, rounds=20, **options), watched=False)
    federation.simulation.prepare()
    return federation


def spoil(federation, name, change, *, rounds):
    """Let the party change its replies of these rounds, counted from 1."""
    party = federation.parties[name]
    honest, count = party._round, iter(range(1, 10**6))

    def answer(message):
        share = honest(message)
        return change(party, message, share) if next(count) in rounds else share

    party._round = answer


def lost(federation):
    return {event.party for event in federation.of_type(trace.PartyLost)}


def test_a_key_that_its_partners_would_refuse_costs_the_party_that_announced_it():
    federation = federation_of()

    def announce_an_old_one(party, message, share):
        key = EphemeralKey(bytes([7]) * 32, 0)
        old = announce(party._setup.identity, party._keys.context, party.name, key)
        return msgspec.structs.replace(share, announcement=old)

    spoil(federation, "b0", announce_an_old_one, rounds=[3])
    tally = federation.simulation.train().tally
    assert lost(federation) == {"b0"}
    assert tally.dropped == 0
    assert tally.trained > 10


@pytest.mark.parametrize("is_greeted", [False, True])
def test_a_replica_that_claims_to_be_ahead_of_its_group_counts_as_lost(is_greeted):
    federation = started()
    if is_greeted:
        federation.script.lose("a1", Fault.GONE)
        federation.train_rounds(1)
    federation.parties["a1"].model_round = 10**15
    federation.train_rounds(1 if is_greeted else 2)
    reasons = [event.reason for event in federation.of_type(trace.PartyLost) if event.party == "a1"]
    assert "cannot have the model of round" in reasons[-1]
    assert federation.simulation.aggregator._membership.model_round("a1") < 10**15


def donate(state=None, secret=bytes(32)):
    """A change that gives a1 a model nobody asked for; without a state, a letter that does not open."""

    def change(party, message, share):
        members = {member.party: member.key_id for member in message.roster}
        body = b"" if state is None else msgspec.msgpack.encode(Donation(party.model_round, secret, state))
        letter = party._letters.seal("a1", _DONATION, body, members["a0"], members["a1"])
        if state is None:
            letter = msgspec.structs.replace(letter, sealed=memoryview(bytes(40)))
        return msgspec.structs.replace(share, donations=[letter])

    return change


@pytest.mark.parametrize("is_garbage", [True, False])
def test_a_model_that_nobody_asked_for_is_not_passed_on(is_garbage):
    federation = federation_of((3, 1))
    honest = federation_of((3, 1))
    state = None if is_garbage else federation.parties["a0"].model.dump()
    spoil(federation, "a0", donate(state), rounds=range(4, 20))
    assert federation.simulation.train().tally == honest.simulation.train().tally
    assert not lost(federation)
    for party in ("a1", "a2"):
        assert federation.parties[party].model.dump() == honest.parties[party].model.dump()
        assert federation.parties[party]._group_secret == federation.parties["a2"]._group_secret != bytes(32)


def test_parties_that_never_stop_writing_to_each_other_are_stopped(monkeypatch):
    monkeypatch.setattr(dialogue, "_MOST_DELIVERIES", 50)
    federation = Federation(job_of((3, 1)), watched=False)
    for name, peer in (("a1", "a2"), ("a2", "a1")):
        party = federation.parties[name]

        def write_again(message, party=party, peer=peer, honest=party._deliver):
            if not party._has_begun:
                return honest(message)
            for announcement in message.announcements:
                party._keys.learn(announcement)
            return m.Mail([party._letters.seal(peer, "preparation", b"and another thing")])

        party._deliver = write_again
    with pytest.raises(RemoteProtocolError, match="still get letters after 200 deliveries"):
        federation.simulation.prepare()


@pytest.mark.parametrize("class_rows", [[], [0, 0], [1, 2, 3]])
def test_an_active_party_that_tells_rows_of_other_classes_ends_the_run_before_it_begins(class_rows):
    job = job_of((1,))
    task = msgspec.structs.replace(job.task, class_weights="balanced")
    federation = Federation(msgspec.structs.replace(job, task=task), watched=False)
    active = federation.parties[ACTIVE]
    honest = active._ready
    active._ready = lambda batches: msgspec.structs.replace(honest(batches), class_rows=class_rows)
    with pytest.raises(RemoteProtocolError, match="expected training rows of 2 classes"):
        federation.simulation.prepare()


def test_an_active_party_that_wants_predictions_for_ever_is_told_off():
    federation = federation_of((1,))
    spoil(
        federation,
        ACTIVE,
        lambda party, message, share: msgspec.structs.replace(share, predicted=0),
        rounds=range(9**6),
    )
    with pytest.raises(PartyTimeout, match="20 passes brought active no prediction that it lacks"):
        federation.simulation.predict()


def test_a_loss_that_is_not_finite_ends_the_run_with_the_reason():
    """Labels near the end of what float32 holds are finite, their squared error is not."""
    job = msgspec.structs.replace(job_of(), task=msgspec.structs.replace(job_of().task, kind="regression"))
    federation = Federation(job, watched=False)
    federation.simulation.prepare()
    labels = np.full(job.training.batch_size, 3e38, "<f4").data
    spoil(federation, ACTIVE, lambda party, message, share: msgspec.structs.replace(share, labels=labels), rounds=[2])
    with pytest.raises(DataError, match=r"the loss of round \d+ is not finite: lower training.learning_rate"):
        federation.simulation.train()
